// Prints the modules one below the other; JSON has the same fields for each.
#include "tools/answers/env_answer.h"

#include "core/base/text.h"
#include "tools/render/answer_json.h"
#include "tools/render/output.h"
#include "tools/render/setting_names.h"

namespace mckpt::impl {

// Every module has the same fields; null if there is nothing to say.
void write_env_json(Output& out, const EnvAnswer& a) {
  AnswerJson json(out);
  json.begin_answer("env", a.ok()).field("version", MCKPT_VERSION).field("compiler", a.compiler);
  json.field("build_type", a.build_type).field("processor", a.processor).field("cores", a.cores);
  json.field("ranks", a.ranks).key("modules").begin_array();
  for (const ModuleReport& m : a.modules) {
    json.begin_object().field("name", m.name).field("purpose", m.purpose);
    json.field("built", m.built);
    m.path.empty() ? json.null_field("path") : json.field("path", m.path);
    json.field("loads", m.loads()).key("facts").begin_object();
    for (const auto& [key, value] : m.facts) json.field(key, value);
    json.end_object();
    m.loads() ? json.null_field("problem") : json.field("problem", m.problem);
    m.loads() ? json.null_field("help") : json.field("help", with_flags(m.help));
    json.end_object();
  }
  json.end_array();
  json.end_answer();
}

void write_env_text(Output& out, const EnvAnswer& a) {
  out.line(out.styled(Style::kBold, cat("mckpt ", MCKPT_VERSION)));
  out.line(cat("  compiler   ", a.compiler, ", ", a.build_type));
  out.line(cat("  processor  ", a.processor, ", ", counted(a.cores, "core")));
  out.line(cat("  ranks      ", a.ranks));
  for (const ModuleReport& m : a.modules) {
    std::string name(m.name);
    out.line(cat("\n", out.styled(Style::kBold, name), std::string(11 - name.size(), ' '), m.purpose));
    if (!m.path.empty()) out.line(cat("  file       ", escaped(m.path, 4096)));
    for (const auto& [key, value] : m.facts)
      out.line(cat("  ", key, std::string(key.size() < 11 ? 11 - key.size() : 1, ' '), escaped(value)));
    if (m.loads()) continue;
    out.line(cat("  ", out.styled(m.faulty() ? Style::kRed : Style::kYellow, m.problem)));
    out.line(cat("  to get it  ", with_flags(m.help)));
  }
}

}  // namespace mckpt::impl
