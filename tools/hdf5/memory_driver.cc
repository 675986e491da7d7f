// The file is a map of pages; a page has its bytes, and a bit for each byte that was written. A page may have
// both metadata and the end of some data, and only the former are the file's own bytes.
//
//   page 3   | header of a dataset (written) | data (not written) ... |    each_written: one stretch
//
// The driver is C: functions in a table, and state in variables of this file, since a process composes one
// file.
#include "hdf5/memory_driver.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>
#include <map>
#include <new>
#include <string>

namespace mckpt::impl {
namespace {

constexpr haddr_t kMostAddress = haddr_t{1} << 62;
constexpr std::size_t kPage = 4096;

struct Page {
  std::array<char, kPage> bytes{};
  std::bitset<kPage> written{};
};

std::map<haddr_t, Page> pages;  // by number
haddr_t end_of_allocation = 0, end_of_file = 0;

// The library's own part comes first; it casts between the two.
struct File {
  H5FD_t base;
};

H5FD_t* create_file(const char*, unsigned, hid_t, haddr_t) {
  File* file = new (std::nothrow) File{};
  return file ? &file->base : nullptr;
}

herr_t close_file(H5FD_t* file) {
  delete reinterpret_cast<File*>(file);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  if (flags) *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t get_end_of_allocation(const H5FD_t*, H5FD_mem_t) { return end_of_allocation; }

herr_t set_end_of_allocation(H5FD_t*, H5FD_mem_t, haddr_t address) {
  end_of_allocation = address;
  return 0;
}

haddr_t get_end_of_file(const H5FD_t*, H5FD_mem_t) { return end_of_file; }

herr_t truncate_file(H5FD_t*, hid_t, hbool_t) {
  end_of_file = end_of_allocation;
  return 0;
}

// Calls `visit` with the page, the place in it and the number of bytes, for each page of the stretch.
template <typename Visit>
void each_page(haddr_t address, std::size_t bytes, Visit&& visit) {
  while (bytes > 0) {
    std::size_t at = static_cast<std::size_t>(address % kPage), n = std::min(bytes, kPage - at);
    visit(address / kPage, at, n);
    address += n;
    bytes -= n;
  }
}

herr_t read_file(H5FD_t*, H5FD_mem_t, hid_t, haddr_t address, size_t bytes, void* buffer) {
  char* to = static_cast<char*>(buffer);
  each_page(address, bytes, [&](haddr_t number, std::size_t at, std::size_t n) {
    auto page = pages.find(number);
    if (page == pages.end())
      std::memset(to, 0, n);
    else
      std::memcpy(to, page->second.bytes.data() + at, n);
    to += n;
  });
  return 0;
}

herr_t write_file(H5FD_t*, H5FD_mem_t, hid_t, haddr_t address, size_t bytes, const void* buffer) {
  const char* from = static_cast<const char*>(buffer);
  each_page(address, bytes, [&](haddr_t number, std::size_t at, std::size_t n) {
    Page& page = pages[number];
    std::memcpy(page.bytes.data() + at, from, n);
    for (std::size_t i = at; i < at + n; i++) page.written.set(i);
    from += n;
  });
  end_of_file = std::max(end_of_file, address + bytes);
  return 0;
}

H5FD_class_t driver() {
  H5FD_class_t driver{};
  driver.name = "mckpt composed";
  driver.maxaddr = kMostAddress;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = create_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = get_end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = get_end_of_file;
  driver.read = read_file;
  driver.write = write_file;
  driver.truncate = truncate_file;
  constexpr H5FD_mem_t kMap[] = H5FD_FLMAP_DICHOTOMY;
  static_assert(sizeof kMap == sizeof driver.fl_map);
  std::copy(std::begin(kMap), std::end(kMap), driver.fl_map);
  return driver;
}

}  // namespace

hid_t memory_access() {
  static const H5FD_class_t kDriver = driver();
  hid_t id = H5FDregister(&kDriver);
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (id < 0 || access < 0 || H5Pset_driver(access, id, nullptr) < 0) return -1;
  return access;
}

std::uint64_t composed_bytes() { return std::max(end_of_allocation, end_of_file); }

void each_written(const std::function<void(std::uint64_t offset, std::string_view bytes)>& visit) {
  std::string stretch;
  haddr_t begin = 0;
  auto flush = [&] {
    if (!stretch.empty()) visit(begin, stretch);
    stretch.clear();
  };
  for (const auto& [number, page] : pages)
    for (std::size_t i = 0; i < kPage; i++) {
      if (!page.written[i]) continue;
      haddr_t address = number * kPage + i;
      if (address != begin + stretch.size()) flush();
      if (stretch.empty()) begin = address;
      stretch += page.bytes[i];
    }
  flush();
}

}  // namespace mckpt::impl
