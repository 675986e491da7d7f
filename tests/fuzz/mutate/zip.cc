// Mutation of zip archives: records that come, go and change their names and bytes, fields of the headers
// and of the end, zip64. The archive is built anew with right offsets, sizes and sums; one field may then be
// false.
#include <algorithm>
#include <array>
#include <optional>

#include "tests/fuzz/mutate/mutator.h"
#include "tests/support/zip_builder.h"

namespace mckpt::impl::mutate {
namespace {

constexpr u16 kDeflated = 8;

struct Record {
  std::string name, data, after;  // `after`: what is stored behind the data, such as a data descriptor
  std::string local_extra, central_extra;
  u16 flags = 0, method = 0;
  u32 attributes = 0, crc = 0;
  u64 bytes = 0;  // inflated; of a stored record, as many as its data has
  bool summed = true;
};

struct Archive {
  std::vector<Record> records;
  std::string front, comment;
  bool zip64 = false;
};

template <typename T>
T at(const std::string& s, std::size_t begin) {
  return load_le<T>(reinterpret_cast<const u8*>(s.data()) + begin);
}

// The record of a directory entry. Nothing where the archive is too odd to be taken apart.
std::optional<Record> record_of(const std::string& s, std::size_t entry, std::size_t front) {
  Record r;
  std::size_t name = at<u16>(s, entry + 28), extra = at<u16>(s, entry + 30), stored = at<u32>(s, entry + 20),
              local = front + at<u32>(s, entry + 42);
  if (local + 30 > s.size() || entry + 46 + name + extra > s.size()) return std::nullopt;
  std::size_t local_name = at<u16>(s, local + 26), local_extra = at<u16>(s, local + 28),
              begin = local + 30 + local_name + local_extra;
  if (begin > s.size() || stored > s.size() - begin) return std::nullopt;
  r.flags = at<u16>(s, entry + 8), r.method = at<u16>(s, entry + 10), r.crc = at<u32>(s, entry + 16);
  r.bytes = at<u32>(s, entry + 24), r.attributes = at<u32>(s, entry + 38);
  r.name = s.substr(entry + 46, name), r.central_extra = s.substr(entry + 46 + name, extra);
  r.local_extra = s.substr(local + 30 + local_name, local_extra), r.data = s.substr(begin, stored);
  if (r.flags & 8 && s.compare(begin + stored, 4, "PK\x07\x08") == 0) r.after = s.substr(begin + stored, 16);
  r.summed = r.crc != 0 || stored == 0;
  return r;
}

std::optional<Archive> taken_apart(const std::string& s) {
  Archive out;
  std::size_t end = s.rfind("PK\x05\x06");
  if (end == s.npos || end + 22 > s.size()) return std::nullopt;
  std::size_t entries = at<u16>(s, end + 10), bytes = at<u32>(s, end + 12), entry = at<u32>(s, end + 16);
  out.comment = s.substr(end + 22);
  if (std::size_t wide = s.rfind("PK\x06\x06"); wide != s.npos && wide + 56 <= end) {
    out.zip64 = true;
    entries = at<u64>(s, wide + 32), bytes = at<u64>(s, wide + 40), entry = at<u64>(s, wide + 48);
    end = wide;
  }
  if (entries > 200 || bytes > end || entry > end - bytes) return std::nullopt;
  std::size_t front = end - bytes - entry;  // bytes in front of the archive
  entry += front;
  out.front = s.substr(0, front);
  for (; entries > 0; entries--) {
    if (entry + 46 > s.size()) return std::nullopt;
    std::optional<Record> r = record_of(s, entry, front);
    if (!r) return std::nullopt;
    entry += 46 + r->name.size() + r->central_extra.size() + at<u16>(s, entry + 32);
    out.records.push_back(std::move(*r));
  }
  return out;
}

struct False {  // what is false in the archive that is built
  std::size_t record = SIZE_MAX;
  bool central = false, both = false;
  std::function<void(ZipHeader&)> header;
  std::function<void(ZipBuilder::End&)> end;
};

std::string put_together(const Archive& archive, const False& lie) {
  ZipBuilder b;
  b.raw(archive.front);
  for (std::size_t i = 0; i < archive.records.size(); i++) {
    const Record& r = archive.records[i];
    b.add(r.name, r.data, [&](ZipHeader& local, ZipHeader& central) {
      local.flags = central.flags = r.flags, local.method = central.method = r.method;
      local.extra = r.local_extra, central.extra = r.central_extra, central.attributes = r.attributes;
      central.offset -= archive.front.size();
      if (r.method == kDeflated) local.bytes = central.bytes = r.bytes;
      if (r.method == kDeflated || !r.summed) local.crc = central.crc = r.crc;
      if (i == lie.record && (!lie.central || lie.both)) lie.header(local);
      if (i == lie.record && (lie.central || lie.both)) lie.header(central);
    });
    b.raw(r.after);
  }
  std::vector<u8> bytes = b.finish([&](ZipBuilder::End& end) {
    end.directory_offset -= archive.front.size();
    end.zip64 = archive.zip64, end.comment = archive.comment;
    if (lie.end) lie.end(end);
  });
  return {bytes.begin(), bytes.end()};
}

// The field of zip64's sizes: the 32-bit ones then say 0xffffffff.
void widen(ZipHeader& h) {
  std::vector<u8> extra;
  append_le<u16>(extra, 1), append_le<u16>(extra, 24);
  append_le<u64>(extra, h.bytes), append_le<u64>(extra, h.stored), append_le<u64>(extra, h.offset);
  h.extra.append(extra.begin(), extra.end());
  h.bytes = h.stored = h.offset = UINT32_MAX;
}

std::function<void(ZipHeader&)> false_field(Choice& choice) {
  u64 number = choice.next();
  auto near = [number](auto v) {
    Choice own(number);
    return static_cast<decltype(v)>(own.border_near(static_cast<i64>(v)));
  };
  switch (choice.below(9)) {
    case 0:
      return [near](ZipHeader& h) { h.flags = near(h.flags); };
    case 1:
      return [near](ZipHeader& h) { h.method = h.method ? near(h.method) : kDeflated; };
    case 2:
      return [near](ZipHeader& h) { h.crc = near(h.crc); };
    case 3:
      return [near](ZipHeader& h) { h.stored = near(h.stored); };
    case 4:
      return [near](ZipHeader& h) { h.bytes = near(h.bytes); };
    case 5:
      return [near](ZipHeader& h) { h.offset = near(h.offset); };
    case 6:
      return [near](ZipHeader& h) { h.attributes = near(h.attributes); };
    case 7:
      return widen;
    default:
      return [number](ZipHeader& h) {
        Choice own(number);
        h.extra = own.one_in(3) ? "" : bytes(h.extra, nullptr, own);
      };
  }
}

std::function<void(ZipBuilder::End&)> false_end(Choice& choice) {
  u64 number = choice.next();
  i64 field = choice.below(4);
  return [number, field](ZipBuilder::End& end) {
    Choice own(number);
    if (field == 3)
      end.zip64 = !end.zip64;
    else
      for (u64* v : {&end.entries, &end.directory_bytes, &end.directory_offset})
        if (own.one_in(2)) *v = static_cast<u64>(own.border_near(static_cast<i64>(*v)));
  };
}

void change_bytes(Record& r, const Record* other, Choice& choice) {
  if (r.method == 0 && r.name.ends_with(".pkl") && choice.below(8) != 0 &&
      pickle(r.data, other && choice.one_in(2) ? &other->data : nullptr, choice))
    return;
  if (choice.one_in(4))
    r.data.resize(static_cast<std::size_t>(choice.below(std::ssize(r.data) + 64)), 'z');
  else
    r.data = bytes(std::move(r.data), other ? &other->data : nullptr, choice);
}

// Same folder, a name at which readers look.
std::string known_name(const std::string& name, Choice& choice) {
  static constexpr std::array<const char*, 8> kNames = {
      "data.pkl", "constants.pkl", "byteorder", "version", ".data/serialization_id",
      "data/0",   "DATA.PKL",      "code/x.py"};
  return name.substr(0, name.find('/') + 1) + choice.of(kNames);
}

void change_records(Archive& a, const Archive* other, Choice& choice) {
  const Archive& source = other ? *other : a;
  if (a.records.empty() || choice.below(8) == 0) {
    if (source.records.empty()) return;
    Record more = const_cast<Record&>(choice.of(source.records));
    if (choice.one_in(2)) more.name += 'a';
    a.records.insert(a.records.begin() + choice.below(std::ssize(a.records) + 1), std::move(more));
    return;
  }
  Record &r = choice.of(a.records), &second = choice.of(a.records);
  switch (choice.below(8)) {
    case 0:
      a.records.erase(a.records.begin() + (&r - a.records.data()));
      break;
    case 1:
      std::swap(r, second);
      break;
    case 2:
      std::swap(r.data, second.data);
      break;
    case 3:
      r.name = choice.one_in(2) ? known_name(r.name, choice) : text_near(r.name, second.name, choice);
      r.name.resize(std::min<std::size_t>(r.name.size(), UINT16_MAX));
      break;
    default: {
      const Record* from =
          other && !other->records.empty() ? &const_cast<Record&>(choice.of(other->records)) : nullptr;
      Record* one = &r;  // a pickle, where there is one and the coin says so
      for (Record& p : a.records)
        if (p.name.ends_with(".pkl") && choice.one_in(2)) one = &p;
      change_bytes(*one, from, choice);
    }
  }
}

}  // namespace

bool zip(std::string& input, const std::string* other, Choice& choice) {
  std::optional<Archive> archive = taken_apart(input), there = other ? taken_apart(*other) : std::nullopt;
  if (!archive || (other && !there)) return false;
  False lie;
  i64 what = choice.below(8);
  if (what < 5 || there) change_records(*archive, there ? &*there : nullptr, choice);
  if (what == 4) archive->zip64 = !archive->zip64;
  if (what == 5) archive->comment = bytes(archive->comment, nullptr, choice).substr(0, 1000);
  if (what == 5 && choice.one_in(4)) archive->front += "front";
  if (what == 6) lie.end = false_end(choice);
  if (what == 7 && !archive->records.empty()) {
    lie.record = static_cast<std::size_t>(choice.below(std::ssize(archive->records)));
    lie.central = choice.one_in(2), lie.both = choice.one_in(2), lie.header = false_field(choice);
  }
  input = put_together(*archive, lie);
  return true;
}

}  // namespace mckpt::impl::mutate
