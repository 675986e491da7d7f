// The script's exit status says what went wrong, and its last line of errors why.
#include "tools/run/logits.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/json/json.h"
#include "tools/process/python.h"

namespace mckpt::impl {
namespace {

constexpr char kScript[] =
#include "logits_script.inc"
    ;

enum Status { kSame = 0, kOther = 1, kFailed = 3, kNoClass = 4, kNoLibrary = 5 };

std::string words_of(const PythonRun& run) {
  std::string text = run.last_error();
  constexpr std::string_view kFront = "logits: ";
  if (text.starts_with(kFront)) text.erase(0, kFront.size());
  return escaped(text, 600);
}

[[noreturn]] void refuse_no_answer(const PythonRun& run, const LogitsOptions& options) {
  Error e(Code::kModuleMissing, "Python ended before it had an answer");
  e.file(options.python)
      .found(run.status > 128 ? cat("signal ", run.status - 128) : cat("exit status ", run.status));
  if (const std::string words = words_of(run); !words.empty()) e.note(words);
  throw e;
}

PythonRun run_script(std::vector<std::string> arguments, const LogitsOptions& options,
                     const std::function<bool()>& keep_on) {
  if (options.trust_remote_code) arguments.emplace_back("--trust-remote-code");
  PythonRun run = run_python(options.python, {kScript, sizeof kScript - 1}, arguments, keep_on);
  if (run.status == kSame || run.status == kOther) return run;
  const std::string words = words_of(run);
  if (run.status == kNoLibrary)
    throw Error(Code::kModuleMissing, "this Python cannot compare logits")
        .file(options.python)
        .found(words)
        .help("--python names one that has torch and transformers; $MCKPT_PYTHON does so too");
  if (run.status == kNoClass)
    throw Error(Code::kModuleMissing, "transformers cannot compute the logits of this model")
        .found(words)
        .help(options.trust_remote_code
                  ? "leave out --logits"
                  : "--trust-remote-code runs code that comes with the model; or leave out --logits");
  if (run.status == kFailed)
    throw Error(Code::kModuleMissing, "transformers did not compute the logits").found(words);
  refuse_no_answer(run, options);
}

std::optional<i64> count_of(const JsonValue& answer, std::string_view key) {
  const JsonValue* value = answer.find(key);
  return value && value->is_integer() ? std::optional(value->integer(key)) : std::nullopt;
}

std::optional<double> number_of(const JsonValue& answer, std::string_view key) {
  const JsonValue* value = answer.find(key);
  return value && value->is(JsonType::kNumber) ? std::optional(value->real(key)) : std::nullopt;
}

}  // namespace

void check_logits(const std::string& folder, const LogitsOptions& options,
                  const std::function<bool()>& keep_on) {
  const PythonRun run = run_script({"--check", folder}, options, keep_on);
  if (run.status != kSame) refuse_no_answer(run, options);  // Python ends with 1 for what nobody caught, too
}

// Libraries may print before the answer, which is the last line.
LogitsAnswer compare_logits(const std::string& exported, const std::string& original,
                            const LogitsOptions& options, const std::function<bool()>& keep_on) {
  const PythonRun run = run_script({exported, original, "--json"}, options, keep_on);
  std::string_view text = run.output;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (const std::size_t line = text.rfind('\n'); line != text.npos) text.remove_prefix(line + 1);
  JsonValue answer;
  try {
    answer = parse_json(text, JsonNumbers::kPython);
  } catch (const Error&) {
    refuse_no_answer(run, options);
  }
  LogitsAnswer out;
  out.equal = run.status == kSame;
  out.tokens = count_of(answer, "tokens").value_or(0), out.layers = count_of(answer, "layers").value_or(0);
  out.first_layer = count_of(answer, "first_layer");
  out.largest_difference = number_of(answer, "largest_difference");
  out.relative_l2 = number_of(answer, "relative_l2");
  out.same_next_tokens = count_of(answer, "same_next_tokens");
  if (const JsonValue* line = answer.find("line"); line && line->is(JsonType::kString))
    out.line = line->string("line");
  return out;
}

}  // namespace mckpt::impl
