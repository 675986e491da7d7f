// The three ways to begin a staged folder, and folders as texts, for its tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "core/base/error.h"
#include "io/output/staged_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl::staged {

namespace fs = std::filesystem;

inline const StagedFolder::Options kNew{.durable = false}, kReplace{.durable = false, .replace = true},
    kResume{.durable = false, .resume = true};

inline std::string code_of(const std::function<void()>& fn) { return thrown_by(fn).substr(0, 6); }

// The difference, and the help.
inline std::string advice_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    std::string out;
    for (const std::string& note : e.notes()) out += note + "\n";
    return out + e.help();
  }
  return "";
}

inline void put(const StagedFolder& folder, const std::string& name, std::string_view text) {
  std::ofstream(folder.folder() + "/" + name) << text;
}

// "name=text name=text" of a folder's files, hidden ones as well.
inline std::string content(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream in(entry.path());
    files[entry.path().filename().string()] =
        entry.is_directory() ? "/" : std::string(std::istreambuf_iterator<char>(in), {});
  }
  std::string out;
  for (const auto& [name, text] : files) out += (out.empty() ? "" : " ") + name + "=" + text;
  return out;
}

}  // namespace mckpt::impl::staged
