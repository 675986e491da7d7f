// Declares PATH... [GLOB], or [GLOB] alone, and --regex. The choice itself, with its error for a name that
// matches nothing, is io/choice/tensor_choice.h.
#include "tools/options/choice.h"

#include <sys/stat.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/store/driver.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {
namespace {

bool is_there(const std::string& path) {
  struct stat st;
  return ::lstat(path.c_str(), &st) == 0;
}

// Whether the word ends as a file of a format does.
bool is_like_a_file(std::string_view word) {
  const std::size_t dot = word.rfind('.');
  if (dot == word.npos) return false;
  const std::string suffix = cat(" ", word.substr(dot), " ");
  return suffix == " .json " || std::ranges::any_of(all_drivers(), [&](const Driver& driver) {
           return cat(" ", driver.suffixes, " ").find(suffix) != std::string::npos;
         });
}

// Whether the word can only be meant as a path: no tensor has such a name.
bool is_like_a_path(std::string_view word) {
  if (word.find_first_of("*?[") != word.npos) return false;
  return word.starts_with("/") || word.starts_with("./") || word.starts_with("../") || word.ends_with("/") ||
         is_like_a_file(word);
}

// A word between the first path and the GLOB that is not a path either: perhaps a second GLOB.
[[noreturn]] void refuse_second_glob(const std::string& word) {
  throw Error(Code::kNotFound, "there is no such file or folder")
      .file(word)
      .note("only the last argument can be a GLOB")
      .help("--regex 'A|B' chooses what A or B matches");
}

// A glob where a path is expected; with a slash it may be a pattern of the shell's that found no file.
bool is_glob(const std::string& word) {
  return word.find_first_of("*?[") != word.npos && word.find('/') == word.npos && !is_there(word);
}

void refuse_early_glob(const std::string& word, std::string_view arguments) {
  if (is_glob(word))
    throw Error(Code::kUsage, "a GLOB comes behind the checkpoints")
        .expected(arguments)
        .found(cat("'", escaped(word, 4096), "' where a path is expected"));
}

[[noreturn]] void refuse_regex_alone() {
  throw Error(Code::kUsage, "--regex says how the GLOB is read, and there is no GLOB");
}

void declare_regex(CommandLine& line, TensorChoice& choice) {
  line.flag("--regex", choice.regex,
            "GLOB is a regular expression, found anywhere in the name: POSIX extended, with \\d \\w \\s \\b")
      .common();
}

}  // namespace

void refuse_empty_glob(const std::string& glob) {
  if (glob.empty())
    throw Error(Code::kUsage, "the GLOB is empty").help("leave the GLOB out to choose all tensors");
}

void ChosenPaths::declare(CommandLine& line, const std::string& what) {
  constexpr std::string_view kGlob =
      "; a last argument that is neither is a GLOB: only tensors whose whole name matches, as in 'model.layers.0.*'";
  line.positional("PATH", paths, cat(what, kGlob)).required();
  declare_regex(line, choice);
}

void ChosenPaths::settle() {
  if (paths.size() > 1 && !is_there(paths.back()) && (choice.regex || !is_like_a_path(paths.back()))) {
    refuse_empty_glob(paths.back());
    choice.pattern = std::move(paths.back());
    paths.pop_back();
  }
  if (several() || !choice.pattern.empty()) refuse_early_glob(paths[0], "PATH... [GLOB]");
  if (choice.regex && choice.pattern.empty()) refuse_regex_alone();
  for (const std::string& path : paths)
    if (!choice.pattern.empty() && &path != &paths[0] && !is_there(path) && !is_like_a_path(path))
      refuse_second_glob(path);
}

const std::string& ChosenPaths::only(std::string_view why) const {
  if (several())
    throw Error(Code::kUsage, cat(why, " is about one PATH")).found(counted(std::ssize(paths), "path"));
  return paths[0];
}

std::vector<i64> ChosenPaths::choose(const Store& store) const {
  try {
    return choice.choose(store);
  } catch (Error& e) {
    bool words = choice.pattern.find_first_of("*?[") == std::string::npos;
    if (e.code() == Code::kNoSuchTensor && !choice.regex && words &&
        choice.pattern.find('/') != std::string::npos)
      throw Error(Code::kNotFound, "there is no such file or folder")
          .file(choice.pattern)
          .note("no tensor has that name either");
    if (e.code() == Code::kNoSuchTensor && words && choice.pattern.find('.') == std::string::npos)
      e.note(cat("'", escaped(choice.pattern),
                 "' is taken for the GLOB, because no file or folder has that name"));
    throw;
  }
}

void ChosenOfTwo::declare(CommandLine& line) {
  line.positional("GLOB", glob_, "only tensors whose whole name (in A) matches, and no objects and files");
  declare_regex(line, choice);
}

void ChosenOfTwo::settle(const std::string& a, const std::string& b) {
  for (const std::string& path : {a, b}) refuse_early_glob(path, "A B [GLOB]");
  if (!glob_) {
    if (choice.regex) refuse_regex_alone();
    return;
  }
  refuse_empty_glob(*glob_);
  if (is_there(*glob_) || (!choice.regex && is_like_a_path(*glob_)))
    throw Error(Code::kUsage, "two checkpoints are compared, and this is a third one")
        .found(cat("'", escaped(*glob_, 4096), "'"))
        .expected("A B [GLOB], where GLOB chooses tensors by name");
  choice.pattern = std::move(*glob_);
}

}  // namespace mckpt::impl
