#include "io/torch_writer.h"

#include "io/crc32.h"

namespace mckpt {
namespace {

// As torch names the archive: the file's name without its suffix.
std::string archive_folder(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  std::string_view stem = name.substr(0, name.rfind('.'));
  // Readers, this one included, take no folder that could be mistaken for a way out.
  bool odd = stem.find_first_not_of('.') == stem.npos || stem.find('\\') != stem.npos;
  return odd ? "archive" : std::string(stem);
}

}  // namespace

TorchWriter::TorchWriter(std::string path, std::span<const TorchTensorSpec> tensors,
                         AtomicFile::Options options)
    : layout_(archive_folder(path), tensors),
      file_(std::move(path), options),
      crc32_(tensors.size()),
      written_(tensors.size()) {
  file_.reserve(layout_.file_bytes());
}

void TorchWriter::write(i64 tensor, std::span<const u8> bytes) {
  std::size_t t = static_cast<std::size_t>(tensor);
  if (static_cast<i64>(bytes.size()) > layout_.data_bytes(tensor) - written_[t])
    throw Error(Code::kInternal, "more bytes of a tensor are written than it has").found(tensor);
  file_.write(layout_.data_offset(tensor) + written_[t], bytes);
  written_[t] += static_cast<i64>(bytes.size());
  crc32_[t] = crc32(crc32_[t], bytes);
}

void TorchWriter::commit() {
  for (i64 t = 0; t < layout_.tensor_count(); t++)
    if (written_[static_cast<std::size_t>(t)] != layout_.data_bytes(t))
      throw Error(Code::kInternal, "a tensor was not written to its end").found(t);
  for (const TorchLayout::Piece& p : layout_.frame(crc32_)) file_.write(p.offset, p.bytes);
  file_.commit();
}

}  // namespace mckpt
