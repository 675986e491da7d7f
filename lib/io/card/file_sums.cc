// Walks over a file from boundary to boundary, where a part begins or ends. Between two of them the bytes go
// to the sum of the file and to the sums of the parts under way: mostly one, and then both are summed
// together.
#include "io/card/file_sums.h"

#include <algorithm>
#include <memory>

#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/sums/sha256.h"

namespace mckpt::impl {
namespace {

constexpr i64 kWindowBytes = 1 << 20;

// One walk.
class FileWalk {
 public:
  FileWalk(const ByteSource& file, std::span<const FilePart> parts) : file_(file), parts_(parts) {
    sums_.parts.resize(parts.size());
    window_.resize(static_cast<std::size_t>(std::min(kWindowBytes, file.size()) + 2 * ByteSource::kPage));
  }

  FileSums run(const std::function<void(i64)>& progress) {
    // A page of the buffer is a page of the file: reads of both are slow where they are not.
    auto address = reinterpret_cast<std::uintptr_t>(window_.data());
    u8* buffer = window_.data() + (ByteSource::kPage - address % ByteSource::kPage) % ByteSource::kPage;
    for (i64 begin = 0; begin < file_.size(); begin += kWindowBytes) {
      i64 end = std::min(begin + kWindowBytes, file_.size());
      std::span<u8> bytes(buffer, static_cast<std::size_t>(end - begin));
      file_.read_block(begin, bytes);
      take(begin, bytes);
      progress(end - begin);
    }
    sums_.sha256 = whole_.hex_digest();
    return std::move(sums_);
  }

 private:
  struct Open {
    std::size_t part;
    i64 end;
    std::unique_ptr<Sha256> sum;
  };

  void take(i64 at, std::span<const u8> bytes) {
    while (!bytes.empty()) {
      begin_parts(at);
      i64 stop = at + std::ssize(bytes);
      if (next_ < parts_.size()) stop = std::min(stop, parts_[next_].offset);
      for (const Open& o : open_) stop = std::min(stop, o.end);
      std::span<const u8> now = bytes.first(static_cast<std::size_t>(stop - at));
      add(at, now);
      bytes = bytes.subspan(now.size());
      at = stop;
      end_parts(at);
    }
  }

  void begin_parts(i64 at) {
    for (; next_ < parts_.size() && parts_[next_].offset == at; next_++)
      open_.push_back({next_, at + parts_[next_].bytes, std::make_unique<Sha256>()});
  }

  void end_parts(i64 at) {
    std::erase_if(open_, [&](Open& o) {
      if (o.end > at) return false;
      sums_.parts[o.part] = o.sum->hex_digest();
      return true;
    });
  }

  // Bytes in which no part begins or ends.
  void add(i64 at, std::span<const u8> bytes) {
    if (open_.empty()) {
      whole_.update(bytes);
      std::vector<SummedStretch>& others = sums_.others;
      if (others.empty() || others.back().offset + others.back().bytes != at) others.push_back({at, 0, 0});
      others.back().bytes += std::ssize(bytes);
      others.back().crc32 = crc32(others.back().crc32, bytes);
      return;
    }
    Sha256::update_both(whole_, *open_[0].sum, bytes);
    for (std::size_t i = 1; i < open_.size(); i++) open_[i].sum->update(bytes);
  }

  const ByteSource& file_;
  std::span<const FilePart> parts_;
  std::vector<u8> window_;
  Sha256 whole_;
  std::vector<Open> open_;
  std::size_t next_ = 0;  // the first part that has not begun
  FileSums sums_;
};

}  // namespace

FileSums sum_file(const ByteSource& file, std::span<const FilePart> parts,
                  const std::function<void(i64 bytes)>& progress) {
  return FileWalk(file, parts).run(progress);
}

}  // namespace mckpt::impl
