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

}  // namespace

std::string with_config_dtype(std::string_view text, std::string_view dtype) {
  std::string out;
  std::vector<std::string_view> open;  // the keys of the objects and lists that the walk is in
  std::string_view key;                // of the value that comes next
  std::size_t copied = 0;
  auto of_weights = [&] {
    return open.size() == 1 ||
           (open.size() == 2 && open[1].ends_with("_config") && open[1] != "quantization_config");
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
    if (!is_key && of_type && std::ranges::find(kTypes, word) != std::end(kTypes)) {
      out += cat(text.substr(copied, at + 1 - copied), dtype);
      copied = end - 1;
    }
    key = is_key ? word : std::string_view();
    at = end - 1;
  }
  return out + std::string(text.substr(copied));
}

bool set_config_dtype(SideFiles& files, DType dtype) {
  auto made = files.texts.find("config.json");
  auto config = std::ranges::find(files.copies, "config.json", &SideFile::name);
  if (made == files.texts.end() && config == files.copies.end()) return false;
  const std::string text = made != files.texts.end()
                               ? made->second
                               : json_text(Folder(files.from, files.opening).open_file(config->name));
  std::string changed = with_config_dtype(text, dtype_name(dtype));
  if (changed == text) return false;
  if (config != files.copies.end()) files.copies.erase(config);
  files.texts.insert_or_assign("config.json", std::move(changed));
  return true;
}

}  // namespace mckpt::impl
