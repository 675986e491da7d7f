// Copies side files in blocks of 1 MiB and sums them again on the way: a copy whose SHA-256 is not the
// planned one is an error and not a result. All files are created at their sizes first, as data files are.
#include "io/copy/side_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/file/place.h"
#include "io/json/json.h"
#include "io/output/output_files.h"
#include "io/sums/sha256.h"
#include "io/values/digest.h"

namespace mckpt::impl {
namespace {

constexpr i64 kBlockBytes = 1 << 20;

std::span<const u8> as_bytes(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

void copy_file(const Folder& from, const SideFile& planned, OutputFiles& out, i32 file) {
  InputFile source = from.open_file(planned.name);
  if (source.size() != planned.bytes) source.throw_changed();
  Sha256 sum;
  for (i64 at = 0; at < planned.bytes; at += kBlockBytes) {
    std::vector<u8> block = source.read(at, std::min(kBlockBytes, planned.bytes - at));
    sum.update(block);
    out.write(file, at, block);
  }
  if (sum.hex_digest() != planned.sha256) source.throw_changed();
}

}  // namespace

void SideFiles::add_copy(const Folder& folder, const std::string& name) {
  std::string path = cat(folder.path(), "/", name);
  if (!folder.has_file(name))
    throw Error(Code::kNotFound,
                "the file would be copied into the result, but it is a link that leads nowhere")
        .file(path)
        .help("restore the file that the link names, or remove the link");
  if (!is_utf8(name))
    throw Error(Code::kNotHeld, "the name of a file that would be copied into the result is not UTF-8")
        .file(path)
        .expected("a name that mckpt_manifest.json can list")
        .help("rename the file, or move it out of the folder");
  InputFile file = folder.open_file(name);
  copies.push_back({name, file.size(), with_file(path, [&] { return sha256_of(file); })});
}

std::string SideFiles::identity() const {
  std::string out;
  for (const SideFile& f : copies) out += cat(f.name, " ", f.bytes, " ", f.sha256, "\n");
  for (const auto& [name, text] : texts) out += cat(name, " ", text.size(), " ", text, "\n");
  return out;
}

i64 SideFiles::bytes() const {
  i64 sum = 0;
  for (const SideFile& f : copies) sum += f.bytes;
  for (const auto& [name, text] : texts) sum += std::ssize(text);
  return sum;
}

std::vector<std::string> SideFiles::names() const {
  std::vector<std::string> out;
  for (const SideFile& f : copies) out.push_back(f.name);
  for (const auto& [name, text] : texts) out.push_back(name);
  return out;
}

void SideFiles::write(const std::string& to, bool durable) const {
  if (::mkdir(to.c_str(), 0777) != 0 && errno != EEXIST)
    throw Error(Code::kWriteFailed, cat("cannot create the folder: ", errno_text(errno))).file(to);
  std::vector<OutputFile> files;
  for (const SideFile& f : copies) {
    if (int error = make_folders(parent_folder(cat(to, "/", f.name)), durable); error != 0)
      throw Error(Code::kWriteFailed, cat("cannot create the folder: ", errno_text(error))).file(to);
    files.push_back({f.name, f.bytes});
  }
  for (const auto& [name, text] : texts) files.push_back({name, std::ssize(text)});
  OutputFiles out(to, std::move(files), OutputFiles::Begin::kReplace);
  i32 file = 0;
  if (!copies.empty()) {
    Folder folder(from, opening);
    for (const SideFile& f : copies) copy_file(folder, f, out, file++);
  }
  for (const auto& [name, text] : texts) out.write(file++, 0, as_bytes(text));
  if (!durable) return;
  out.sync();
  if (int error = sync_folders(to); error != 0)
    throw Error(Code::kWriteFailed, cat("making the folder durable failed: ", errno_text(error))).file(to);
}

}  // namespace mckpt::impl
