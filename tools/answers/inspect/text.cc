// Prints the summary of a checkpoint and the tree of its tensors.
//
//   model  45 tensors  7,408 params  14.5 KiB
//
//   lm_head.weight             [32, 16]    bfloat16       1.00 KiB
//   model                      44 tensors                 13.5 KiB
//   |- layers.{0,1}        x2  21 tensors            6.22 KiB each      layers that are alike, folded
//   |  |- input_layernorm.weight  [16]     bfloat16           32 B
//
// The tree is built by the library (io/choice/name_tree.h); here it becomes lines, at most 100 unless --tree
// is given.
#include "tools/answers/inspect/text.h"

#include <cstdio>
#include <map>

#include "convert/dialects/fsdp/packed_by.h"
#include "convert/open/rank_parameters.h"
#include "convert/open/shard_facts.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "hf/adapter/adapted_store.h"
#include "io/choice/name_tree.h"
#include "io/store/lone_shard.h"
#include "io/store/open/beside.h"
#include "io/store/store.h"
#include "tools/answers/inspect/shard.h"
#include "tools/render/output.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostTreeLines = 100;
constexpr std::size_t kMostObjectLines = 10;
constexpr std::size_t kMostTypes = 5;

// "bfloat16 99.9 %, float32 0.1 %": shares of the bytes, at most five types.
std::string dtype_shares(const StoreSummary& s) {
  std::string out;
  for (std::size_t i = 0; i < s.dtypes.size(); i++) {
    if (i == kMostTypes) return cat(out, " and ", s.dtypes.size() - i, " more");
    const StoreSummary::OfType& d = s.dtypes[i];
    out += cat(i ? ", " : "", dtype_name(d.dtype), " ", percent(d.amount.bytes, s.all.bytes));
  }
  return out;
}

// The path as given, and the folder that was opened if the path led to another one (a run's folder leads to
// an iteration).
std::string first_line(const Store& store, const std::string& path) {
  std::string out = escaped(path, 4096);
  if (store.root() != path) out += cat(" -> ", escaped(store.root(), 4096));
  return out;
}

// The value of a fact; null if the store has none of that name.
const std::string* fact(const Store& store, std::string_view name) {
  auto found =
      std::ranges::find(store.facts(), name, [](const auto& f) -> std::string_view { return f.first; });
  return found == store.facts().end() ? nullptr : &found->second;
}

// Format, number of files and ranks, and the facts that the format knows, separated by bars.
std::string format_line(const Store& store) {
  std::string out(format_text(store.format()));
  const i64 files = std::ssize(store.files());
  const i64 lost = std::ranges::count_if(store.files(), [](const StoreFile& f) { return f.bytes < 0; });
  if (lost > 0)
    out += cat(" | ", files - lost, " of ", files, " files");
  else if (files != 1 || !store.files()[0].path.empty())
    out += cat(" | ", counted(files, "file"));
  if (store.ranks() > 1) out += cat(" | ", counted(store.ranks(), "rank"));
  const std::string* modules = fact(store, "quantized modules");
  for (const auto& [name, value] : store.facts()) {
    // The modules' formats already name the bits and blocks that the config declares; only its method may be
    // news.
    const bool declared = modules && name == "quantized";
    const std::string_view shown =
        std::string_view(value).substr(0, declared ? value.find(", ") : value.npos);
    if ((declared && modules->starts_with(shown)) || (modules && name == "packed bits")) continue;
    out += cat(" | ", escaped(name), " ", escaped(shown));
  }
  return out;
}

// "7,408 params, 10,720 with copies": in files of ranks, several have the same parameters.
std::string params_text(const Store& store, const Amount& model) {
  const std::string all = human_count(model.items);
  if (!has_rank_copies(store)) return cat(all, " params");
  const std::optional<i64> once = parameters_of_ranks(store);
  return once ? cat(human_count(*once), " params, ", all, " with copies")
              : cat(all, " params, with the ranks' copies");
}

// A word for objects that belong neither to the model nor to its optimizer.
std::string_view name_of_others(const Store& store) {
  const StateParts parts(store);
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (parts.part(t) == StatePart::kOther && !parts.is_scale(t)) return part_name(StatePart::kOther);
  return "scales";
}

// A line for each part of the state (model, optimizer, other) that has tensors, and their sum.
void write_parts(Output& out, const Store& store, const StoreSummary& s) {
  TextTable table({{"", Align::kLeft}, {"", Align::kRight}, {"", Align::kRight}, {"", Align::kRight}});
  auto row = [&](std::string_view name, const Amount& a) {
    table.row(
        {std::string(name), counted(a.tensors, "tensor"),
         name == part_name(StatePart::kModel) ? params_text(store, a) : cat(human_count(a.items), " items"),
         human_bytes(a.bytes)});
  };
  int parts = 0;
  for (StatePart p : {StatePart::kModel, StatePart::kOptimizer, StatePart::kOther})
    if (s.part(p).tensors > 0)
      row(p == StatePart::kOther ? name_of_others(store) : part_name(p), s.part(p)), parts++;
  // Quantised weights are counted as parameters, and stored as fewer items: several in one.
  if (parts != 1) row(s.all.items < s.part(StatePart::kModel).items ? "stored" : "total", s.all);
  table.write(out);
}

// Objects whose names differ only in numbers share a line. In DCP, values are in records of their own, and
// are not read for this.
void write_objects(Output& out, const Store& store) {
  if (store.objects().empty()) return;
  struct Group {
    std::string summary;
    i64 count = 0;
  };
  std::map<std::string, Group> groups;
  for (const Object& o : store.objects()) {
    std::string pattern;
    for (char c : o.name)
      if (c < '0' || c > '9') {
        pattern += c;
      } else if (pattern.empty() || pattern.back() != '*') {
        pattern += '*';
      }
    Group& g = groups[pattern];
    if (g.count++ == 0) g.summary = o.summary;
  }
  out.line("");
  const bool unread = std::ranges::any_of(groups, [](const auto& g) { return g.second.summary.empty(); });
  out.line(
      cat(out.styled(Style::kBold, "other objects"), unread ? "  (-v and --args show their values)" : ""));
  std::size_t shown = 0;
  for (const auto& [name, g] : groups) {
    if (shown++ == kMostObjectLines) {
      out.line(cat("  and ", counted(std::ssize(groups) - kMostObjectLines, "more kind")));
      break;
    }
    out.line(cat("  ", escaped(name), g.count > 1 ? cat("  x", g.count) : "",
                 g.summary.empty() ? "" : cat("  ", escaped(g.summary))));
  }
}

// Writes a tree into a table, so that the columns behind the names line up. Lines beyond the limit are
// counted only.
class TreeWriter {
 public:
  // `shard`: of one rank's file; `store` then has the local shapes.
  TreeWriter(const Store& store, const ShardFacts* shard, bool unicode, i64 most_lines)
      : store_(store), shard_(shard), unicode_(unicode), most_lines_(most_lines) {}

  void write(Output& out, const NameTree& tree) {
    table_.write_made(out, [&] {
      lines_ = 0;
      tree.each_line([&](const TreeLine& t) {
        if (lines_++ < most_lines_) line(t);
      });
    });
    if (lines_ > most_lines_)
      out.line(cat("... ", counted(lines_ - most_lines_, "more line"), "; --tree shows all"));
  }

 private:
  // The top level hangs on nothing.
  void line(const TreeLine& t) {
    const std::size_t depth = static_cast<std::size_t>(t.depth);
    const char* hook = depth == 0 ? "" : unicode_ ? (t.last ? "└─ " : "├─ ") : (t.last ? "`- " : "|- ");
    bool tensor = t.tensor >= 0;
    std::vector<std::string> cells = {
        cat(indents_[depth], hook, escaped(t.label)), t.copies > 1 ? cat("x", t.copies) : "",
        tensor ? dims_to_string(store_.dims(t.tensor)) : counted(t.tensors, "tensor"),
        tensor ? std::string(dtype_name(store_.dtype(t.tensor))) : "",
        cat(human_bytes(t.bytes), t.copies > 1 ? " each" : "")};
    if (shard_) cells.push_back(tensor ? whole_text(shard_->tensors[t.tensor]) : "");
    table_.row(cells);
    indents_.resize(depth + 2);
    if (depth > 0) indents_[depth + 1] = cat(indents_[depth], t.last ? "   " : unicode_ ? "│  " : "|  ");
  }

  static std::vector<TextTable::Column> columns(bool shard) {
    using enum Align;
    std::vector<TextTable::Column> out = {{"", kLeft}, {"", kRight}, {"", kLeft}, {"", kLeft}, {"", kRight}};
    if (shard) out.push_back({"", kLeft});
    return out;
  }

  const Store& store_;
  const ShardFacts* shard_;
  bool unicode_;
  i64 most_lines_, lines_ = 0;
  std::vector<std::string> indents_{""};  // by depth, of the lines that may come next
  TextTable table_{columns(shard_ != nullptr)};
};

// Who packed it, or the packing that is nearest.
void write_packing(Output& out, const Store& store, const PackedBy& by) {
  out.line(cat(by.fits() ? "packed by " : "boxes fit no packing; the nearest is ", to_string(by)));
  for (const std::string& remark : by.remarks) out.line(cat("  ", remark));
  if (!by.fits()) out.line(cat("  ", disagreement_text(store, by)));
}

}  // namespace

std::string human_count(i64 n) {
  static constexpr const char* kUnits[] = {"", " K", " M", " B", " T"};
  if (n < 100'000) return with_commas(n);
  double v = static_cast<double>(n);
  int unit = 0;
  while (v >= 1000 && unit < 4) v /= 1000, unit++;
  char text[32];
  std::snprintf(text, sizeof text, v < 10 ? "%.2f%s" : v < 100 ? "%.1f%s" : "%.0f%s", v, kUnits[unit]);
  return cat(text, " (", with_commas(n), ")");
}

void write_card(Output& out, const Store& store, const PackedParameters& packed, const std::string& path,
                const About& about) {
  const std::unique_ptr<Store> local = local_view(store);
  StoreSummary summary = summarize(*local, packed);
  out.line(out.styled(Style::kBold, first_line(store, path)));
  out.line(format_line(store));
  std::vector<std::string> beside;
  for (const std::string& name : checkpoints_beside(model_path(path, store.opening()), store))
    beside.push_back(escaped(name));
  if (!beside.empty()) out.line(cat("beside this checkpoint, not shown: ", listed(beside)));
  write_parts(out, *local, summary);
  if (about.shard) write_shard_card(out, store, *about.shard);
  if (!summary.dtypes.empty()) out.line(dtype_shares(summary));
  if (about.packing) write_packing(out, store, *about.packing);
}

void write_tree(Output& out, const Store& store, bool whole, bool objects, const ShardFacts* shard) {
  if (store.tensor_count() > 0) {
    out.line("");
    const std::unique_ptr<Store> local = local_view(store);
    const NameTree tree(*local, natural_order(store), !whole);
    TreeWriter(*local, shard, out.unicode(), whole ? INT64_MAX : kMostTreeLines).write(out, tree);
  }
  if (objects) write_objects(out, store);
}

}  // namespace mckpt::impl
