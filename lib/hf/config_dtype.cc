// Walks over the text once: strings, and where objects begin and end. Numbers and words are passed over.
#include "hf/config_dtype.h"

#include <algorithm>
#include <vector>

#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/copy/side_files.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kTypes[] = {"float32",       "float16",       "bfloat16",      "float64",
                                       "torch.float32", "torch.float16", "torch.bfloat16"};

// One behind the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (at++; at < text.size() && text[at] != '"'; at++)
    if (text[at] == '\\') at++;
  return std::min(at + 1, text.size());
}

// Calls visit(begin, end) for each value of `dtype` or `torch_dtype` that says the type of weights: at the top, and
// in parts of the model, which are called *_config; the type in which a quantised model computes is none.
template <typename Visit>
void each_type(std::string_view text, Visit&& visit) {
  std::vector<std::string_view> open;  // the keys of the objects and lists that the walk is in
  std::string_view key;                // of the value that comes next
  auto of_weights = [&] {
    return !open.empty() && std::ranges::all_of(open.begin() + 1, open.end(), [](std::string_view part) {
      return part.ends_with("_config") && part != "quantization_config";
    });
  };
  for (std::size_t at = 0; at < text.size(); at++) {
    const char c = text[at];
    if (c == '{' || c == '[') open.push_back(key), key = {};
    if ((c == '}' || c == ']') && !open.empty()) open.pop_back();
    if (c == ',') key = {};
    if (c != '"') continue;
    const std::size_t end = end_of_string(text, at);
    const std::string_view word = text.substr(at + 1, end - at - 2);
    const std::size_t after = text.find_first_not_of(" \t\r\n", end);
    const bool is_key = after != text.npos && text[after] == ':';
    const bool of_type = (key == "dtype" || key == "torch_dtype") && of_weights();
    if (!is_key && of_type && std::ranges::find(kTypes, word) != std::end(kTypes)) visit(at + 1, end - 1);
    key = is_key ? word : std::string_view();
    at = end - 1;
  }
}

// The text of config.json as it will be written; "" without one.
std::string config_text(const SideFiles& files) {
  if (auto made = files.texts.find("config.json"); made != files.texts.end()) return made->second;
  auto config = std::ranges::find(files.copies, "config.json", &SideFile::name);
  if (config == files.copies.end()) return "";
  return json_text(Folder(files.from, files.opening).open_file(config->name));
}

}  // namespace

std::string with_config_dtype(std::string_view text, std::string_view dtype) {
  std::string out;
  std::size_t copied = 0;
  each_type(text, [&](std::size_t begin, std::size_t end) {
    out += cat(text.substr(copied, begin - copied), dtype);
    copied = end;
  });
  return out + std::string(text.substr(copied));
}

std::optional<DType> config_dtype(const SideFiles& files) {
  const std::string text = config_text(files);
  std::optional<DType> found;
  each_type(text, [&](std::size_t begin, std::size_t end) {
    if (!found) found = dtype_from_name(std::string_view(text).substr(begin, end - begin));
  });
  return found;
}

bool set_config_dtype(SideFiles& files, DType dtype) {
  const std::string text = config_text(files);
  std::string changed = with_config_dtype(text, dtype_name(dtype));
  if (changed == text) return false;
  std::erase_if(files.copies, [](const SideFile& file) { return file.name == "config.json"; });
  files.texts.insert_or_assign("config.json", std::move(changed));
  return true;
}

}  // namespace mckpt::impl
