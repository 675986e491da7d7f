// Recognises a file by its first bytes: first by fixed bytes at fixed places, then by what safetensors, HTML,
// JSON and pickles begin with, and last by an HDF5 signature further inside. The order matters: a safetensors
// file has JSON behind its length, and a legacy torch file is a pickle too.
#include "io/store/open/sniff.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "io/file/file.h"

namespace mckpt::impl {
namespace {

constexpr i64 kHeadBytes = 512;
constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

// Bytes at a fixed place that only files of one kind have there.
struct Magic {
  FileKind kind;
  std::size_t at;
  std::string_view bytes;
};

// pickle.dump(0x1950a86a20f9469cfc6c, protocol=2) is how torch.save began before 1.6.
constexpr Magic kMagics[] = {
    {FileKind::kZip, 0, "PK\x03\x04"},
    {FileKind::kZip, 0, "PK\x05\x06"},
    {FileKind::kLegacyTorch, 0,
     std::string_view("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14)},
    {FileKind::kHdf5, 0, kHdf5Signature},
    {FileKind::kGguf, 0, "GGUF"},
    {FileKind::kNumpy, 0, "\x93NUMPY"},
    {FileKind::kGzip, 0, "\x1f\x8b"},
    {FileKind::kLfsPointer, 0, "version https://git-lfs"},
    {FileKind::kTflite, 4, "TFL3"},
    {FileKind::kTar, 257, "ustar"},
};

bool begins_like_html(std::string_view head) {
  std::string text(head.substr(0, 64));
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  return text.starts_with("<!doctype html") || text.starts_with("<html") || text.starts_with("<?xml");
}

bool begins_like_json(std::string_view head) {
  std::size_t i = head.find_first_not_of(" \t\r\n");
  return i != std::string_view::npos && (head[i] == '{' || head[i] == '[');
}

// True for a zip archive whose first entry is an array: NumPy writes nothing else into its archives.
bool begins_like_npz(std::string_view head) {
  constexpr std::size_t kNameLengthAt = 26, kNameAt = 30;
  if (head.size() < kNameAt || !head.starts_with("PK\x03\x04")) return false;
  std::size_t length = static_cast<u8>(head[kNameLengthAt]) + 256u * static_cast<u8>(head[kNameLengthAt + 1]);
  return head.substr(kNameAt, length).ends_with(".npy");
}

// True for the first two fields of ONNX's message: a small version (tag 08), and the name of the program that
// wrote the file (tag 12).
bool begins_like_onnx(std::string_view head) {
  if (head.size() < 5 || head[0] != 0x08 || head[1] < 1 || head[1] > 64 || head[2] != 0x12) return false;
  std::string_view producer = head.substr(4, static_cast<u8>(head[3]));
  return !producer.empty() && std::ranges::all_of(producer, [](char c) { return c >= ' ' && c <= '~'; });
}

// True for eight bytes of a length that is not larger than the file, and then the JSON of an object.
bool begins_like_safetensors(std::string_view head, i64 file_bytes) {
  if (head.size() < 10) return false;
  u64 length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<u8>(head[i]);
  return length <= static_cast<u64>(file_bytes) && begins_like_json(head.substr(8));
}

}  // namespace

FileKind sniff(const ByteSource& file) {
  if (file.size() == 0) return FileKind::kEmpty;
  std::vector<u8> bytes = file.read(0, std::min(kHeadBytes, file.size()));
  std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (begins_like_npz(head)) return FileKind::kNumpyArchive;
  for (const Magic& m : kMagics)
    if (head.size() >= m.at && head.substr(m.at).starts_with(m.bytes) &&
        !(m.kind == FileKind::kGzip &&
          begins_like_safetensors(head, file.size())))  // a header of 35,615 bytes
      return m.kind;
  if (begins_like_safetensors(head, file.size())) return FileKind::kSafetensors;
  if (begins_like_onnx(head)) return FileKind::kOnnx;
  if (begins_like_html(head)) return FileKind::kHtml;
  if (begins_like_json(head)) return FileKind::kJson;
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 1 && head[1] <= 5) return FileKind::kPickle;
  if (find_hdf5_superblock(file) >= 0) return FileKind::kHdf5;
  const bool zeros = head.size() > 8 && head.find_first_not_of('\0') == head.npos;
  return zeros ? FileKind::kZeros : FileKind::kUnknown;
}

i64 find_hdf5_superblock(const ByteSource& file) {
  i64 bytes = static_cast<i64>(kHdf5Signature.size());
  for (i64 at = 0; at <= file.size() - bytes; at = at == 0 ? 512 : at * 2) {
    std::vector<u8> here = file.read(at, bytes);
    if (std::string_view(reinterpret_cast<const char*>(here.data()), here.size()) == kHdf5Signature)
      return at;
  }
  return -1;
}

std::string_view sniffed_name(FileKind kind) {
  switch (kind) {
    case FileKind::kUnknown:
    case FileKind::kSafetensors:
      return "";
    case FileKind::kEmpty:
      return "empty";
    case FileKind::kZip:
      return "a zip archive, such as torch.save writes (.pt)";
    case FileKind::kLegacyTorch:
      return "a legacy torch.save file (.pt)";
    case FileKind::kPickle:
      return "a bare pickle";
    case FileKind::kTar:
      return "a tar archive, as torch.save wrote before 0.2";
    case FileKind::kHdf5:
      return "an HDF5 file";
    case FileKind::kGguf:
      return "a GGUF file (llama.cpp)";
    case FileKind::kNumpy:
      return "a NumPy .npy file";
    case FileKind::kNumpyArchive:
      return "a NumPy .npz archive";
    case FileKind::kOnnx:
      return "an ONNX model (a program with its weights)";
    case FileKind::kTflite:
      return "a TensorFlow Lite model";
    case FileKind::kGzip:
      return "packed (gzip)";
    case FileKind::kLfsPointer:
      return "a git-lfs pointer: the data were never fetched (git lfs pull)";
    case FileKind::kHtml:
      return "an HTML page, so the download was an error page";
    case FileKind::kJson:
      return "a JSON text";
    case FileKind::kZeros:
      return "zeros from its first byte on: its place was reserved, and the data were not written";
  }
  return "";
}

}  // namespace mckpt::impl
