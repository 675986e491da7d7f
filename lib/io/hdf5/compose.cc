// Writes the request, and reads the answer as carefully as that about a file.
#include "io/hdf5/compose.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/bytes.h"
#include "io/hdf5/answer.h"
#include "io/hdf5/helper.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Laid;
using hdf5_wire::Wanted;

// Reads the layout front to back; used once.
class LayoutParser {
 public:
  explicit LayoutParser(std::span<const u8> answer) : rest_(answer) {}

  ComposedHdf5 parse(i64 datasets) {
    if (text_of(take(std::ssize(hdf5_wire::kLayoutMagic))) != hdf5_wire::kLayoutMagic)
      fail("the first bytes are wrong: the program is of another version");
    i64 records = 0;
    while (record()) records++;
    if (number() != static_cast<u64>(records) || !rest_.empty()) fail("the number of records is wrong");
    if (std::ssize(out_.offsets) != datasets) fail("the number of datasets is wrong");
    i64 end = 0;
    for (const Hdf5Piece& p : out_.pieces) {
      if (p.offset < end) fail("pieces of the file overlap");
      end = checked_add(p.offset, std::ssize(p.bytes), "the end of a piece");
    }
    if (end > out_.bytes) fail("a piece is beyond the end of the file");
    return std::move(out_);
  }

 private:
  [[noreturn]] static void fail(std::string_view what) {
    throw Error(Code::kHelperFailed, "the answer of mckpt-hdf5 makes no sense").found(what);
  }
  static std::string_view text_of(std::span<const u8> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const u8> take(i64 bytes) {
    if (bytes < 0 || bytes > std::ssize(rest_)) fail("the answer is cut short");
    std::span<const u8> taken = rest_.first(static_cast<std::size_t>(bytes));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  u64 number() { return load_le<u64>(take(sizeof(u64)).data()); }
  i64 size() { return static_cast<i64>(std::min<u64>(number(), INT64_MAX)); }
  std::string text() { return std::string(text_of(take(size()))); }

  bool record() {
    switch (static_cast<Laid>(take(1)[0])) {
      case Laid::kOffset: {
        u64 offset = number();
        out_.offsets.push_back(
            offset == hdf5_wire::kUnwritten ? -1 : static_cast<i64>(std::min<u64>(offset, INT64_MAX)));
        return true;
      }
      case Laid::kPiece: {
        i64 offset = size();
        out_.pieces.push_back({offset, text()});
        return true;
      }
      case Laid::kBytes:
        out_.bytes = size();
        return true;
      case Laid::kFault:
        throw Error(Code::kNotHeld, cat("HDF5 cannot store this: ", escaped(text(), 500)));
      case Laid::kEnd:
        return false;
    }
    fail("a record is of an unknown kind");
  }

  std::span<const u8> rest_;
  ComposedHdf5 out_;
};

}  // namespace

Hdf5Request::Hdf5Request(i64 user_block) : bytes_(hdf5_wire::kRequestMagic) { number(user_block); }

void Hdf5Request::number(i64 v) {
  for (int i = 0; i < 8; i++) byte(static_cast<int>(static_cast<u64>(v) >> 8 * i & 0xff));
}

void Hdf5Request::put(std::string_view text) {
  number(std::ssize(text));
  bytes_ += text;
}

void Hdf5Request::type(const Hdf5Type& type) {
  byte(static_cast<int>(type.kind));
  number(type.bytes);
  byte(static_cast<int>(hdf5_wire::Order::kLittle));
  for (i64 n : type.numbers) number(n);
}

void Hdf5Request::list(std::span<const i64> values) {
  for (i64 v : values) number(v);
}

void Hdf5Request::group(std::string_view path) {
  byte(static_cast<int>(Wanted::kGroup));
  put(path);
  objects_++;
}

i64 Hdf5Request::contiguous(std::string_view path, const Hdf5Type& of, std::span<const i64> dims) {
  byte(static_cast<int>(Wanted::kContiguous));
  put(path);
  type(of);
  number(std::ssize(dims));
  list(dims);
  objects_++;
  return datasets_++;
}

void Hdf5Request::virtual_dataset(std::string_view path, const Hdf5Type& of, std::span<const i64> dims,
                                  std::span<const Hdf5Mapping> mappings) {
  byte(static_cast<int>(Wanted::kVirtual));
  put(path);
  type(of);
  number(std::ssize(dims));
  list(dims);
  number(std::ssize(mappings));
  for (const Hdf5Mapping& m : mappings) {
    put(m.file);
    put(m.dataset);
    list(m.offsets);
    list(m.sizes);
  }
  objects_ += 1 + std::ssize(mappings);
}

void Hdf5Request::text(std::string_view name, std::string_view value) {
  byte(static_cast<int>(Wanted::kText));
  put(name);
  put(value);
}

void Hdf5Request::numbers(std::string_view name, std::span<const i64> values) {
  byte(static_cast<int>(Wanted::kNumbers));
  put(name);
  number(std::ssize(values));
  list(values);
}

std::string Hdf5Request::take() {
  byte(static_cast<int>(Wanted::kEnd));
  return std::move(bytes_);
}

ComposedHdf5 compose_hdf5(Hdf5Request request, std::span<const std::string> folders) {
  i64 objects = request.objects(), datasets = request.datasets();
  return LayoutParser(ask_hdf5_composer(request.take(), objects, folders)).parse(datasets);
}

}  // namespace mckpt::impl
