#include "tools/render/cp_slice_answer.h"

#include <algorithm>
#include <optional>

#include "core/hybrid/cp_slice.h"
#include "tools/render/answer_json.h"
#include "tools/render/text_table.h"

namespace mckpt {
namespace {

// Names as the answer has them; a question may leave out "_local_tp" and write cp and rank.
struct SliceKind {
  std::string_view name, op, words;
  std::vector<std::string_view> sizes;
};

const std::vector<SliceKind>& kinds() {
  static const std::vector<SliceKind> kKinds = {
      {"mamba",
       "mamba_cp_slice",
       "Mamba",
       {"d_inner_local_tp", "nheads_local_tp", "ngroups_local_tp", "d_state"}},
      {"gdp",
       "gdp_cp_slice",
       "gated delta product",
       {"d_inner_local_tp", "nheads_local_tp", "ngroups_local_tp", "d_state", "num_householder"}},
      {"gdn",
       "gdn_cp_slice",
       "gated delta net",
       {"qk_dim_local_tp", "v_dim_local_tp", "num_v_heads_local_tp"}},
      {"gdn2",
       "gdn2_cp_slice",
       "gated delta net 2",
       {"qk_dim_local_tp", "v_dim_local_tp", "num_k_heads_local_tp"}},
  };
  return kKinds;
}

std::string_view short_name(std::string_view name) {
  constexpr std::string_view kSuffix = "_local_tp";
  if (name == "cp_size") return "cp";
  if (name == "cp_rank") return "rank";
  return name.ends_with(kSuffix) ? name.substr(0, name.size() - kSuffix.size()) : name;
}

struct Question {
  const SliceKind* kind;
  std::vector<i64> sizes;
  CpRank cp;
};

std::vector<std::string_view> short_names(const SliceKind& kind) {
  std::vector<std::string_view> names;
  for (std::string_view name : kind.sizes) names.push_back(short_name(name));
  names.insert(names.end(), {"cp", "rank"});
  return names;
}

const SliceKind& find_kind(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SliceKind& kind : kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw Error(Code::kUsage, cat("--cp-slice: '", escaped(name), "' is no kind of layer with such slices"))
      .expected(listed(names));
}

// Takes one NAME=NUMBER into the value of that name.
void take_size(std::string_view text, std::span<const std::string_view> full,
               std::span<const std::string_view> names, std::vector<std::optional<i64>>& values) {
  std::size_t equals = text.find('=');
  std::string_view name = text.substr(0, equals);
  for (std::size_t i = 0; equals != text.npos && i < names.size(); i++) {
    if (name != names[i] && name != full[i]) continue;
    if (values[i]) throw Error(Code::kUsage, cat("--cp-slice: ", names[i], " is given twice"));
    values[i] = parse_i64(text.substr(equals + 1), cat("--cp-slice ", names[i]));
    return;
  }
  throw Error(Code::kUsage, cat("--cp-slice: '", escaped(text), "' is no size of this kind"))
      .expected(cat(listed(names, 8), ", each as NAME=NUMBER"));
}

Question parse_question(std::string_view text) {
  std::size_t colon = std::min(text.find(':'), text.size());
  const SliceKind& kind = find_kind(text.substr(0, colon));
  std::vector<std::string_view> full = kind.sizes, names = short_names(kind);
  full.insert(full.end(), {"cp_size", "cp_rank"});
  std::vector<std::optional<i64>> values(names.size());
  for (std::string_view rest = text.substr(std::min(colon + 1, text.size())); !rest.empty();) {
    std::size_t comma = std::min(rest.find(','), rest.size());
    take_size(rest.substr(0, comma), full, names, values);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  std::vector<i64> sizes;
  for (std::size_t i = 0; i < values.size(); i++) {
    if (!values[i])
      throw Error(Code::kUsage, cat("--cp-slice: ", names[i], " is missing")).expected(listed(names, 8));
    sizes.push_back(*values[i]);
  }
  CpRank cp{sizes[sizes.size() - 2], sizes.back()};
  sizes.resize(kind.sizes.size());
  return {&kind, std::move(sizes), cp};
}

struct NamedRows {
  std::string_view field, words;
  std::vector<RowRange> rows;
};

struct Answer {
  std::vector<NamedRows> rows;
  std::vector<std::pair<std::string_view, i64>> numbers;
  std::optional<std::vector<RowRange>> order;  // of in_proj; kinds that have one, where it divides
  std::string order_fault;                     // where it does not
};

Answer mamba_answer(const MambaSlice& slice, bool has_d) {
  Answer a;
  a.rows = {{"conv_rows", "conv1d weight and bias", slice.conv},
            {"head_rows", has_d ? "dt_bias, A_log, D" : "dt_bias, A_log", {slice.heads}}};
  if (has_d) a.rows.push_back({"D_hdim_rows", "D with hidden dimension", {slice.d_hidden}});
  a.numbers = {{"nheads_local_tpcp", slice.local_heads},
               {"ngroups_local_tpcp", slice.local_groups},
               {"group_repeat_count", slice.group_repeat},
               {"conv_channels", slice.conv_channels}};
  return a;
}

// The order of in_proj may fail to divide where the slices do not.
void add_order(Answer& a, std::span<const i64> sections, i64 cp_size) {
  try {
    a.order = section_cp_order(sections, cp_size);
  } catch (const Error& e) {
    if (e.code() != Code::kBadSlice) throw;
    a.order_fault = e.what();
  }
}

Answer gdn_answer(const Question& q) {
  GdnSizes sizes{q.sizes[0], q.sizes[1]};
  Answer a;
  a.rows = {{"conv_rows", "conv1d weight and bias", section_cp_slice(gdn_conv_sections(sizes), q.cp)}};
  std::vector<RowRange> heads = section_cp_slice(std::span(&q.sizes[2], 1), q.cp);
  if (q.kind->name == "gdn") {
    a.rows.push_back({"head_rows", "dt_bias, A_log", std::move(heads)});
    add_order(a, gdn_in_proj_sections(sizes, q.sizes[2]), q.cp.size);
  } else {
    a.rows.push_back({"A_log_rows", "A_log", std::move(heads)});
    a.rows.push_back({"dt_bias_rows", "dt_bias", section_cp_slice(std::span(&q.sizes[0], 1), q.cp)});
    add_order(a, gdn2_in_proj_sections(sizes), q.cp.size);
  }
  return a;
}

Answer find_answer(const Question& q) {
  if (q.kind->name == "mamba")
    return mamba_answer(mamba_cp_slice({q.sizes[0], q.sizes[1], q.sizes[2], q.sizes[3]}, q.cp), true);
  if (q.kind->name == "gdp")
    return mamba_answer(gdp_cp_slice({q.sizes[0], q.sizes[1], q.sizes[2], q.sizes[3]}, q.sizes[4], q.cp),
                        false);
  return gdn_answer(q);
}

i64 row_count(std::span<const RowRange> rows) {
  i64 n = 0;
  for (const RowRange& r : rows) n += r.end - r.begin;
  return n;
}

void write_rows(JsonWriter& json, std::string_view field, std::span<const RowRange> rows) {
  constexpr i64 kMostRows = 1 << 22;  // each is a number in the answer
  if (i64 n = row_count(rows); n > kMostRows)
    throw Error(Code::kUsage, "--cp-slice: too many rows to list as JSON")
        .expected(cat("at most ", kMostRows))
        .found(n);
  json.key(field).begin_array();
  for (const RowRange& r : rows)
    for (i64 row = r.begin; row < r.end; row++) json.value(row);
  json.end_array();
}

void write_question(AnswerJson& json, const Question& q, bool ok) {
  json.begin_answer("pattern", ok).field("op", q.kind->op);
  for (std::size_t i = 0; i < q.sizes.size(); i++) json.field(q.kind->sizes[i], q.sizes[i]);
  json.field("cp_size", q.cp.size).field("cp_rank", q.cp.rank);
}

void write_answer_json(Output& out, const Question& q, const Answer& a) {
  AnswerJson json(out);
  write_question(json, q, true);
  for (const NamedRows& rows : a.rows) write_rows(json, rows.field, rows.rows);
  for (const auto& [name, value] : a.numbers) json.field(name, value);
  if (a.order) write_rows(json, "in_proj_head_perm", *a.order);
  if (!a.order_fault.empty()) json.field("in_proj_head_perm_error", "not_divisible");
  json.end_answer();
}

std::string range_list(std::span<const RowRange> rows) {
  constexpr std::size_t kMost = 16;
  std::string out;
  for (std::size_t i = 0; i < rows.size() && i < kMost; i++) {
    out += cat(i ? ", " : "", rows[i].begin);
    if (rows[i].end - rows[i].begin > 1) out += cat("-", rows[i].end - 1);
  }
  if (rows.size() > kMost) out += cat(" and ", rows.size() - kMost, " more ranges");
  return rows.empty() ? "none" : out;
}

void write_answer_text(Output& out, const Question& q, const Answer& a) {
  out.line(cat(out.styled(Style::kBold, q.kind->words), ": context-parallel rank ", q.cp.rank, " of ",
               q.cp.size, ", rows of the tensors of its tensor-parallel rank"));
  out.line("");
  TextTable table({{"parameter"}, {"rows", Align::kRight}, {"which"}});
  for (const NamedRows& rows : a.rows)
    table.row({std::string(rows.words), cat(row_count(rows.rows)), range_list(rows.rows)});
  if (a.order) table.row({"in_proj, order of all ranks", cat(row_count(*a.order)), range_list(*a.order)});
  table.write(out);
  out.line("");
  for (const auto& [name, value] : a.numbers) out.line(cat(name, " ", value));
  if (!a.order_fault.empty()) out.line(cat(out.styled(Style::kYellow, "warning"), ": ", a.order_fault));
  out.line("Checkpoints hold the whole tensors: context-parallel ranks are copies of each other there.");
}

Exit answer_indivisible(Output& out, const Question& q, const Error& e) {
  if (out.json()) {
    AnswerJson json(out);
    write_question(json, q, false);
    json.field("error", "not_divisible").field("message", e.what());
    json.end_answer();
  } else {
    out.line(cat(out.styled(Style::kRed, "not_divisible"), ": ", e.what()));
    out.line(cat(out.styled(Style::kGreen, "help"),
                 ": choose a context-parallel size that divides the heads, and that divides the number "
                 "of groups or is a multiple of it"));
  }
  return Exit::kNo;
}

}  // namespace

void describe_cp_slice(CommandLine& line) {
  line.description(
      "--cp-slice takes a kind and sizes of one tensor-parallel rank, written without blanks as "
      "KIND:SIZE=N,SIZE=N:");
  for (const SliceKind& kind : kinds()) {
    std::string sizes;
    for (std::string_view name : short_names(kind)) sizes += cat(sizes.empty() ? "" : ", ", name, "=N");
    line.described(std::string(kind.name), sizes);
  }
}

Exit answer_cp_slice(Output& out, std::string_view question) {
  Question q = parse_question(question);
  Answer a;
  try {
    a = find_answer(q);
  } catch (const Error& e) {
    if (e.code() != Code::kBadSlice) throw;
    return answer_indivisible(out, q, e);
  }
  if (out.json())
    write_answer_json(out, q, a);
  else
    write_answer_text(out, q, a);
  return Exit::kOk;
}

}  // namespace mckpt
