// A virtual file driver of the HDF5 library over standard input; every call that would write is refused.
//
//   H5Fopen("/input") -> open_input: no file is opened      H5D... -> read_input: pread(0, user block + address)
//
// The driver is C: functions in a table, and state in three variables of this file, since a process reads one
// file.
#include "hdf5/fd_driver.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace mckpt::impl {
namespace {

constexpr int kInput = 0;
constexpr haddr_t kMostAddress = haddr_t{1} << 62;

haddr_t file_begin = 0, file_bytes = 0;
Stretch* located = nullptr;

// The library's own part comes first; it casts between the two.
struct File {
  H5FD_t base;  // first, as the library wants it
  haddr_t end_of_allocation;
};

H5FD_t* open_input(const char*, unsigned flags, hid_t, haddr_t) {
  if (flags & H5F_ACC_RDWR) return nullptr;
  File* file = new (std::nothrow) File{};
  return file ? &file->base : nullptr;
}

herr_t close_input(H5FD_t* file) {
  delete reinterpret_cast<File*>(file);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  if (flags) *flags = 0;
  return 0;
}

haddr_t get_end_of_allocation(const H5FD_t* file, H5FD_mem_t) {
  return reinterpret_cast<const File*>(file)->end_of_allocation;
}

herr_t set_end_of_allocation(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  reinterpret_cast<File*>(file)->end_of_allocation = address;
  return 0;
}

haddr_t get_end_of_file(const H5FD_t*, H5FD_mem_t) { return file_bytes; }

// Behind the end of the file are zeros, as the library's own drivers have it.
herr_t read_input(H5FD_t*, H5FD_mem_t type, hid_t, haddr_t address, size_t bytes, void* buffer) {
  if (located && type == H5FD_MEM_DRAW) {
    *located = {address, bytes, located->count + 1};
    return 0;
  }
  char* to = static_cast<char*>(buffer);
  while (bytes > 0 && address < file_bytes) {
    ssize_t n = ::pread(kInput, to, bytes, static_cast<off_t>(file_begin + address));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    to += n;
    address += static_cast<haddr_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  std::memset(to, 0, bytes);
  return 0;
}

herr_t refuse_write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

H5FD_class_t driver() {
  H5FD_class_t driver{};
  driver.name = "mckpt input";
  driver.maxaddr = kMostAddress;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open_input;
  driver.close = close_input;
  driver.query = query;
  driver.get_eoa = get_end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = get_end_of_file;
  driver.read = read_input;
  driver.write = refuse_write;
  for (H5FD_mem_t& list : driver.fl_map) list = H5FD_MEM_SUPER;
  return driver;
}

}  // namespace

hid_t input_access(std::int64_t begin) {
  static const H5FD_class_t kDriver = driver();
  struct stat st;
  if (::fstat(kInput, &st) != 0 || begin < 0 || begin > st.st_size) return -1;
  file_begin = static_cast<haddr_t>(begin);
  file_bytes = static_cast<haddr_t>(st.st_size) - file_begin;
  hid_t id = H5FDregister(&kDriver);
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (id < 0 || access < 0 || H5Pset_driver(access, id, nullptr) < 0) return -1;
  return access;
}

std::uint64_t input_bytes() { return file_bytes; }

std::string whole_input() {
  std::string bytes(file_bytes, '\0');
  read_input(nullptr, H5FD_MEM_DEFAULT, H5P_DEFAULT, 0, bytes.size(), bytes.data());
  return bytes;
}

LocateData::LocateData(Stretch& to) { located = &to; }
LocateData::~LocateData() { located = nullptr; }

}  // namespace mckpt::impl
