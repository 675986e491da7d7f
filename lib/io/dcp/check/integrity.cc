// Compares the files of a folder with the hashes that integrity.json lists. A file that cannot be parsed is
// a finding of its own.
#include "io/dcp/check/integrity.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/listing/listed_file.h"
#include "io/store/findings.h"

namespace mckpt::impl {
namespace {

constexpr const char* kName = "integrity.json";
// A hash line is about 90 bytes, so this is enough for half a million files.
constexpr i64 kMostBytes = i64{64} << 20;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  return text;
}

// Hashes are compared without regard to case.
void check_file(const Folder& folder, const std::string& name, const std::string& want, Findings& findings) {
  const std::string sum = lower(want);
  if (std::optional<Finding> unlike = unlike_listed(
          folder, {.name = name, .sha256 = sum},
          {kName, Code::kBadManifest, Code::kIncomplete, "copy the file again from its source"}))
    findings.add(std::move(*unlike));
}

}  // namespace

bool has_integrity(const Folder& folder) { return folder.has_file(kName); }

std::vector<Finding> check_integrity(const Folder& folder) {
  Findings findings;
  if (!has_integrity(folder)) return {};
  try {
    InputFile file = folder.open_file(kName);
    if (file.size() > kMostBytes)
      throw Error(Code::kBadManifest, "integrity.json is too large").found(file.size());
    std::vector<u8> text = file.read(0, file.size());
    JsonValue json = parse_json({reinterpret_cast<const char*>(text.data()), text.size()});
    const JsonValue *algorithm = json.find("algorithm"), *files = json.find("files");
    if (algorithm == nullptr || files == nullptr || algorithm->string("algorithm") != "sha256")
      throw Error(Code::kBadManifest, "integrity.json has no SHA-256 of files");
    for (const JsonMember& member : files->object("files"))
      check_file(folder, member.name, member.value.string(member.name), findings);
  } catch (const Error& e) {
    Finding f = to_finding(e);
    f.file = kName;
    findings.add(std::move(f));
  }
  return findings.take();
}

}  // namespace mckpt::impl
