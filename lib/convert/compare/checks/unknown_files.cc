// A pickle of protocol 0 or 1 is text, or begins like any file. One that a program would load names classes
// or functions: so a file counts as one if it can be read as a pickle to its end and names some.
#include "convert/compare/checks/unknown_files.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/pickle/pickle.h"
#include "io/store/open/sniff.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostOldPickleBytes = i64{1} << 20, kMostConfigBytes = i64{16} << 20;
// The opcodes with which a pickle without a mark can begin: GLOBAL, INST, MARK, PUT-less values and empty
// containers.
constexpr std::string_view kOldBegins = "ci(]}lt)dINSVFLKMJTUXG";

// As Python spells modules and classes: letters of other scripts too.
bool is_python_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || static_cast<unsigned char>(c) >= 0x80;
  });
}

bool is_old_pickle(const InputFile& file) {
  if (file.size() < 4 || file.size() > kMostOldPickleBytes) return false;
  std::vector<u8> bytes = file.read(0, file.size());
  if (kOldBegins.find(static_cast<char>(bytes[0])) == kOldBegins.npos) return false;
  try {
    const Pickle pickle(bytes);
    return !pickle.classes().empty() && std::ranges::all_of(pickle.classes(), [](const PickleClass& c) {
      return is_python_name(c.module) && is_python_name(c.name);
    });
  } catch (const Error&) {
    return false;
  }
}

bool has_auto_map(const Folder& folder, std::string_view name) {
  try {
    if (!folder.has_file(name)) return false;
    const JsonValue json = parse_config(json_text(folder.open_file(name), kMostConfigBytes));
    return json.is(JsonType::kObject) && json.find("auto_map") != nullptr;
  } catch (const Error&) {
    return false;  // the check of the file says so
  }
}

}  // namespace

UnknownFile unknown_file(const InputFile& file) {
  switch (sniff(file)) {
    case FileKind::kPickle:
      return UnknownFile::kPickle;
    case FileKind::kZip:
    case FileKind::kLegacyTorch:
      return UnknownFile::kCheckpoint;
    case FileKind::kUnknown:
      return is_old_pickle(file) ? UnknownFile::kPickle : UnknownFile::kNothing;
    default:
      return UnknownFile::kNothing;
  }
}

std::string config_with_code(const std::string& root, const OpenOptions& opening) {
  constexpr std::string_view kConfigs[] = {"config.json", "tokenizer_config.json", "processor_config.json",
                                           "preprocessor_config.json"};
  try {
    const Folder folder(root, opening);
    for (std::string_view config : kConfigs)
      if (has_auto_map(folder, config)) return std::string(config);
  } catch (const Error&) {  // the root is a file, or cannot be listed
  }
  return "";
}

}  // namespace mckpt::impl
