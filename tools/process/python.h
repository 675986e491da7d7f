// A Python of this machine, for what only its libraries can answer: mckpt itself has no use for one.
//
//   find_python({})       $MCKPT_PYTHON, or the python3 beside this program, or the first python3 of $PATH
//   run_python(python, script, {"A", "B"}, ...)     script on standard output and standard error, as text
//
// The script travels in the program. It gets no folder of the caller's on its path, so no file that happens
// to be there is imported; and no launcher's variables are passed on to it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// A path, or a name that is found in $PATH. `told`: what the user asked for.
std::string find_python(const std::optional<std::string>& told);

struct PythonRun {
  int status = 0;  // of its exit; 128 and the number of the signal that ended it
  std::string output, errors;

  std::string last_error() const;  // the last line of `errors` that is not empty
};

// `keep_on` is asked every few hundredths of a second; the Python is ended when it returns false, and
// kInterrupted thrown. Throws kModuleMissing if the program cannot be started.
PythonRun run_python(const std::string& python, std::string_view script,
                     const std::vector<std::string>& arguments, const std::function<bool()>& keep_on);

}  // namespace mckpt::impl
