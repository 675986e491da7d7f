// Options by the type of the variable that receives the value.
#include "io/file/parallel.h"
#include "tools/options/command_line.h"
#include "tools/options/parse_number.h"

namespace mckpt::impl {

CommandLine::Option CommandLine::option(const std::string& names, std::string& value,
                                        const std::string& help) {
  return taking_one(
      names, "TEXT", [&value](const std::string& v, const std::string&) { value = v; }, help);
}

CommandLine::Option CommandLine::option(const std::string& names, std::optional<std::string>& value,
                                        const std::string& help) {
  return taking_one(
      names, "TEXT", [&value](const std::string& v, const std::string&) { value = v; }, help);
}

CommandLine::Option CommandLine::option(const std::string& names, std::vector<std::string>& values,
                                        const std::string& help) {
  auto take = [&values](const std::vector<std::string>& given) {
    values.insert(values.end(), given.begin(), given.end());
  };
  return taking(names, take, true, help);
}

CommandLine::Option CommandLine::option(const std::string& names, i64& value, const std::string& help) {
  auto take = [&value](const std::string& v, const std::string& n) { value = parse_i64(v, n); };
  return taking_one(names, "N", take, help);
}

CommandLine::Option CommandLine::option(const std::string& names, std::optional<i64>& value,
                                        const std::string& help) {
  auto take = [&value](const std::string& v, const std::string& n) { value = parse_i64(v, n); };
  return taking_one(names, "N", take, help);
}

CommandLine::Option CommandLine::option(const std::string& names, double& value, const std::string& help) {
  auto take = [&value](const std::string& v, const std::string& n) { value = parse_double(v, n); };
  return taking_one(names, "X", take, help);
}

CommandLine::Option CommandLine::bytes(const std::string& names, i64& value, const std::string& help) {
  auto take = [&value](const std::string& v, const std::string& n) { value = parse_bytes(v, n); };
  return taking_one(names, "SIZE", take, help);
}

CommandLine::Option CommandLine::bytes(const std::string& names, std::optional<i64>& value,
                                       const std::string& help) {
  auto take = [&value](const std::string& v, const std::string& n) { value = parse_bytes(v, n); };
  return taking_one(names, "SIZE", take, help);
}

CommandLine::Option CommandLine::threads(int& value, const std::string& help) {
  auto take = [&value](const std::string& v, const std::string& n) {
    i64 given = parse_i64(v, n);
    check_threads(given);
    value = static_cast<int>(given);
  };
  return taking_one("-j,--threads", "N", take, help);
}

}  // namespace mckpt::impl
