// Visits every struct once, with its defaults.
#include "options/field_list.h"

#include <algorithm>

#include "core/base/text.h"
#include "options/fields.h"
#include "options/kinds.h"
#include "options/results.h"

namespace mckpt::impl {
namespace {

// Calls fn(group, v) for each group of fields: a conversion, or a function of the interface.
template <typename Fn>
void each_group(Fn&& fn) {
  for (const ConversionKind& kind : conversion_kinds()) {
    AnyConversion what = kind.empty();
    fn(kind.name, [&](FieldVisitor& v) { fields(what, v); });
  }
  mckpt::RunOptions run;
  fn("run", [&](FieldVisitor& v) { fields(run, v); });
  mckpt::OpenOptions open;
  fn("open", [&](FieldVisitor& v) { fields(open, v); });
  SourceOptions source;
  fn("open_as_fsdp", [&](FieldVisitor& v) { fields(source, v); });
  mckpt::VerifyOptions verify;
  fn("verify", [&](FieldVisitor& v) { fields(verify, v); });
  mckpt::CompareOptions compare;
  fn("compare", [&](FieldVisitor& v) { fields(compare, v); });
  mckpt::DiffOptions diff;
  fn("diff", [&](FieldVisitor& v) { fields(diff, v); });
  mckpt::PlotOptions plot;
  fn("plot", [&](FieldVisitor& v) { fields(plot, v); });
  TensorsToLoad tensors;
  fn("load", [&](FieldVisitor& v) { fields(tensors, v); });
  mckpt::RankToLoad rank;
  fn("load_rank", [&](FieldVisitor& v) { fields(rank, v); });
}

class FlagOf final : public FieldVisitor {
 public:
  FlagOf(std::string_view kind, std::string_view name) : FieldVisitor(kind), name_(name) {}
  void field(const Field& field, FieldValue) override {
    if (!found.empty() || field.name != name_ || field.argument || field.doors == FieldDoors::kSettings)
      return;
    found = flags_of(field).front();
  }
  std::string found;

 private:
  std::string_view name_;
};

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

template <typename Texts>
std::string list_of(const Texts& texts) {
  std::string out = "[";
  for (const auto& text : texts) out += cat(out.size() > 1 ? ", " : "", quoted(text));
  return out + "]";
}

struct TypeName {
  std::string operator()(const bool*) const { return "flag"; }
  std::string operator()(const ClearedBy&) const { return "flag"; }
  std::string operator()(const int*) const { return "number"; }
  std::string operator()(const std::int64_t*) const { return "number"; }
  std::string operator()(const std::optional<std::int64_t>*) const { return "number"; }
  std::string operator()(const std::string*) const { return "text"; }
  std::string operator()(const std::optional<std::string>*) const { return "text"; }
  std::string operator()(const std::vector<std::string>*) const { return "texts"; }
  std::string operator()(const TextPairs*) const { return "rules"; }
  std::string operator()(const TakeTexts&) const { return "texts"; }
};

class FieldsJson final : public FieldVisitor {
 public:
  using FieldVisitor::FieldVisitor;
  void field(const Field& f, FieldValue value) override {
    const char* doors = f.doors == FieldDoors::kSettings       ? "settings"
                        : f.doors == FieldDoors::kProgram      ? "program"
                        : f.doors == FieldDoors::kEveryCommand ? "every"
                                                               : "both";
    text += cat(text.empty() ? "" : ",\n", "      {\"name\": ", quoted(f.name),
                ", \"type\": ", quoted(std::visit(TypeName{}, value)), ", \"value\": ", quoted(f.value),
                ", \"flags\": ", f.argument ? "[]" : list_of(flags_of(f)),
                ", \"words\": ", list_of(words_of(f.words)), ", \"only\": ", f.only,
                ", \"argument\": ", f.argument, ", \"bytes\": ", f.bytes, ", \"doors\": ", quoted(doors),
                ", \"help\": ", quoted(f.help), "}");
  }
  std::string text;
};

template <typename Result>
void add_result(const char* name, std::string& to) {
  to += cat("  {\"name\": ", quoted(name), ", \"fields\": [");
  const Result result{};
  bool first = true;
  fields(result, [&](const char* field, const auto&, const char* help) {
    to += cat(first ? "\n" : ",\n", "      {\"name\": ", quoted(field),
              ", \"program\": ", quoted(program_name(field)), ", \"help\": ", quoted(help), "}");
    first = false;
  });
  to += "\n    ]}";
}

}  // namespace

std::string flag_of_field(std::string_view name) {
  std::string found;
  each_group([&](std::string_view group, auto&& show) {
    if (!found.empty()) return;
    FlagOf v(group, name);
    show(v);
    found = v.found;
  });
  return found;
}

std::string field_list_json() {
  std::string out = "{\"kinds\": [\n";
  bool first = true;
  each_group([&](std::string_view group, auto&& show) {
    FieldsJson v(group);
    show(v);
    const ConversionKind* kind = conversion_mode(group);
    out += cat(first ? "" : ",\n", "  {\"name\": ", quoted(group), ", \"conversion\": ", kind != nullptr);
    if (kind)
      out += cat(", \"word\": ", quoted(kind->word), ", \"others\": ", list_of(words_of(kind->others)),
                 ", \"summary\": ", quoted(kind->summary), ", \"makes\": ", quoted(kind->makes),
                 ", \"resumes\": ", kind->resumes, ", \"shares_work\": ", kind->shares_work);
    out += cat(", \"fields\": [\n", v.text, "\n    ]}");
    first = false;
  });
  out += "\n],\n\"results\": [\n";
  add_result<mckpt::Account>("Account", out);
  add_result<mckpt::RunReport>("RunReport", out += ",\n");
  add_result<mckpt::Statistics>("Statistics", out += ",\n");
  return out + "\n]}\n";
}

}  // namespace mckpt::impl
