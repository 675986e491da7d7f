// Writes zip archives for tests, with every field open to falsification.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/bytes.h"
#include "io/file/crc32.h"

namespace mckpt::impl {

inline std::span<const u8> as_bytes(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

struct ZipHeader {
  u16 flags = 0, method = 0;
  u32 crc = 0;
  u64 stored = 0, bytes = 0;
  std::string name, extra;
  u64 offset = 0;      // directory only
  u32 attributes = 0;  // directory only
};

class ZipBuilder {
 public:
  using Change = std::function<void(ZipHeader& local, ZipHeader& central)>;

  // Appends a record; `change` may falsify the headers, `data` is written as it is.
  ZipBuilder& add(std::string_view name, std::string_view data, const Change& change = {}) {
    ZipHeader local;
    local.crc = crc32(0, as_bytes(data));
    local.stored = local.bytes = data.size();
    local.name = name;
    ZipHeader central = local;
    central.offset = out_.size();
    if (change) change(local, central);
    put<u32>(0x04034b50), put<u16>(20), put_common(local);
    put<u16>(static_cast<u16>(local.extra.size())), put_text(local.name), put_text(local.extra);
    put_text(data);
    centrals_.push_back(central);
    return *this;
  }

  ZipBuilder& raw(std::string_view bytes) { return put_text(bytes), *this; }

  struct End {
    u64 entries, directory_bytes, directory_offset;
    std::string comment;
    bool zip64 = false;
  };

  std::vector<u8> finish(const std::function<void(End&)>& change = {}) {
    End end{centrals_.size(), 0, out_.size(), "", false};
    for (const ZipHeader& c : centrals_) put_central(c);
    end.directory_bytes = out_.size() - end.directory_offset;
    if (change) change(end);
    if (end.zip64) {
      u64 at = out_.size();
      put<u32>(0x06064b50), put<u64>(44), put<u16>(45), put<u16>(45), put<u32>(0), put<u32>(0);
      put<u64>(end.entries), put<u64>(end.entries), put<u64>(end.directory_bytes),
          put<u64>(end.directory_offset);
      put<u32>(0x07064b50), put<u32>(0), put<u64>(at), put<u32>(1);
    }
    auto narrow = [&](u64 v, u64 saturated) { return end.zip64 ? saturated : v; };
    put<u32>(0x06054b50), put<u32>(0);
    put<u16>(static_cast<u16>(narrow(end.entries, 0xffff))),
        put<u16>(static_cast<u16>(narrow(end.entries, 0xffff)));
    put<u32>(static_cast<u32>(narrow(end.directory_bytes, 0xffffffff)));
    put<u32>(static_cast<u32>(narrow(end.directory_offset, 0xffffffff)));
    put<u16>(static_cast<u16>(end.comment.size())), put_text(end.comment);
    return out_;
  }

 private:
  template <typename T>
  void put(T v) {
    append_le(out_, v);
  }
  void put_text(std::string_view text) { out_.insert(out_.end(), text.begin(), text.end()); }
  void put_common(const ZipHeader& h) {
    put<u16>(h.flags), put<u16>(h.method), put<u32>(0), put<u32>(h.crc);
    put<u32>(static_cast<u32>(h.stored)), put<u32>(static_cast<u32>(h.bytes));
    put<u16>(static_cast<u16>(h.name.size()));
  }
  void put_central(const ZipHeader& h) {
    put<u32>(0x02014b50), put<u16>(0x031e), put<u16>(20), put_common(h);
    put<u16>(static_cast<u16>(h.extra.size())), put<u16>(0), put<u16>(0), put<u16>(0);
    put<u32>(h.attributes), put<u32>(static_cast<u32>(h.offset)), put_text(h.name), put_text(h.extra);
  }

  std::vector<u8> out_;
  std::vector<ZipHeader> centrals_;
};

}  // namespace mckpt::impl
