// Pairs the tensors of a dump with tensors of the model by their names without wrappers, compares headers and
// attributes, makes the digests of the model's items, and looks for the values of unlike tensors on other
// ranks and in other tensors.
#include "convert/compare/diff/rank_diff.h"

#include <algorithm>
#include <map>
#include <memory>

#include "convert/compare/diff/diff.h"
#include "convert/compare/diff/rank_hints.h"
#include "convert/compare/diff/rank_tensor.h"
#include "convert/rank/rank_share.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "core/base/observer.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/rank_dump/rank_dump.h"

namespace mckpt::impl {
namespace {

// The tensors of the model in the form that more of the dump's names have.
struct Expected {
  std::vector<HeldTensor> tensors;
  std::map<std::string, std::size_t, std::less<>> by_name;
  std::size_t found = 0;  // names of the dump

  Expected(std::vector<HeldTensor> held, const RankDump& dump) : tensors(std::move(held)) {
    for (std::size_t i = 0; i < tensors.size(); i++) by_name.emplace(bare_name(tensors[i].name), i);
    for (const DumpedTensor& t : dump.tensors) found += by_name.contains(bare_name(t.name));
  }
};

// Throws kUsage for options that a comparison of digests cannot have.
void refuse_other_options(const DiffOptions& o) {
  if (!o.within.rules.empty() || !o.within.otherwise.none())
    throw Error(Code::kUsage, "a dump of a live rank has digests, which no tolerance can compare")
        .help("leave out the tolerance");
  const CompareOptions& c = o.comparing;
  if (c.opening.assets || c.path_tp || c.path_etp || c.opening.source_tp || c.opening.source_etp ||
      !c.model_dict.empty() || !c.opening.accept.empty())
    throw Error(Code::kUsage, "a dump of a live rank is compared with a Hugging Face model alone")
        .help("leave out what is about checkpoints: their ranks, assets, dicts and damage");
}

class RankDiff {
 public:
  RankDiff(const std::string& a, const std::string& b, const DiffOptions& options, Observer& observer)
      : options_(options), live_(*options.live), observer_(observer) {
    const OpenOptions& files = options.comparing.opening.model.files;
    dump_is_a_ = is_rank_dump(a, files);
    if (dump_is_a_ == is_rank_dump(b, files)) {
      for (const std::string* path : {&a, &b})
        if (!is_folder(*path, files)) (void)InputFile(*path, files);  // throws for one that is not there
      throw Error(Code::kUsage,
                  dump_is_a_ ? "both are dumps of live ranks" : "neither is a dump of a live rank")
          .expected("a dump, and the folder of a Hugging Face model")
          .found(cat(escaped(a, 4096), " and ", escaped(b, 4096)))
          .help("mckpt/rank_dump.py of the Python package writes a dump inside the training process");
    }
    dump_ = read_rank_dump(dump_is_a_ ? a : b, files);
    model_path_ = dump_is_a_ ? b : a;
    out_.root_a = a, out_.root_b = b, out_.choice = options.comparing.choice.pattern;
  }

  Diff run() {
    const i64 rank = live_.rank.value_or(dump_.rank);
    if (rank != dump_.rank) warn(cat("the dump says that it is of rank ", dump_.rank, ", not ", rank));
    ShareRun run = live_.run(dump_.world);
    if (run.grid.world() != dump_.world)
      warn(cat("the dump says that its run has ", counted(dump_.world, "rank"), ", and the grid has ",
               run.grid.world()));
    SpellingEvidence names;
    for (const DumpedTensor& t : dump_.tensors) names.add(bare_name(t.name));
    if (!run.spelling) run.spelling = names.found(), run.spelling_found = true;
    run.model.files = options_.comparing.opening.model.files;
    run.model.threads = options_.comparing.threads;
    const ShareForm form = live_.fsdp ? ShareForm::kSaved : ShareForm::kAtRunTime;
    share_ = std::make_unique<RankShare>(model_path_, std::move(run), rank, form, true);
    if (!share_->model().has_data())
      throw Error(Code::kNotFound, "there are no weights to compare with").file(model_path_);
    for (const Note& note : share_->notes()) observer_.note(note);
    expect();
    pair();
    compare_values();
    attribute_notes();
    finish(rank);
    return std::move(out_);
  }

 private:
  void warn(std::string text) { observer_.note({Note::Kind::kWarning, std::move(text)}); }

  void expect() {
    expected_ = std::make_unique<Expected>(
        share_->held(live_.fsdp ? ShareForm::kWrapped : ShareForm::kAtRunTime), dump_);
    if (!live_.fsdp) return;
    auto saved = std::make_unique<Expected>(share_->held(ShareForm::kSaved), dump_);
    as_saved_ = saved->found > expected_->found;
    if (as_saved_) expected_ = std::move(saved);
  }

  // Pairs what is chosen; the names of A choose.
  void pair() {
    for (const DumpedTensor& t : dump_.tensors) {
      of_dump_.any |= t.attributes.any();
      of_dump_.sequence_parallel |= t.attributes.sequence_parallel.value_or(false);
    }
    const std::function<bool(std::string_view)> chosen = chooser();
    const Grid& grid = share_->grid();
    std::vector<bool> seen(expected_->tensors.size());
    for (const DumpedTensor& t : dump_.tensors) {
      auto at = expected_->by_name.find(bare_name(t.name));
      const HeldTensor* h = at == expected_->by_name.end() ? nullptr : &expected_->tensors[at->second];
      if (h && seen[at->second])
        throw Error(Code::kBadJson, "two tensors of the dump are one of the model")
            .tensor(t.name)
            .file(dump_.path);
      if (h) seen[at->second] = true;
      if (!chosen(dump_is_a_ || !h ? t.name : h->name)) continue;
      if (!h) {
        only(true, t.name, RankPair{.dump = &t}.dump_text());
        continue;
      }
      pairs_.push_back(paired(t, *h, live_.fsdp));
      // Whether experts that are only tensor-parallel are reduced with all others depends on Megatron's
      // version.
      const bool by_version = h->parameter->expert() && grid.ep == 1 && grid.etp != grid.tp;
      const ParameterMarks marks = share_->marks(*h);
      wants_sequence_ |= marks.sequence_parallel;
      compare_attributes(pairs_.back(), marks, of_dump_, !by_version, unset_);
    }
    for (std::size_t i = 0; i < seen.size(); i++) {
      const HeldTensor& h = expected_->tensors[i];
      // A state dict leaves out what the rank has nothing of.
      if (seen[i] || h.items.empty() || !chosen(h.name)) continue;
      only(false, h.name, RankPair{.model = &h}.model_text());
    }
  }

  // Throws kNoSuchTensor for a pattern that chooses nothing.
  std::function<bool(std::string_view)> chooser() const {
    std::vector<std::string_view> names;
    for (const DumpedTensor& t : dump_.tensors)
      if (dump_is_a_) names.push_back(t.name);
    for (const HeldTensor& h : expected_->tensors)
      if (!dump_is_a_) names.push_back(h.name);
    if (!options_.comparing.choice.all()) (void)options_.comparing.choice.choose(names);
    return options_.comparing.choice.test();
  }

  void compare_values() {
    std::vector<HeldItems> wanted;
    i64 bytes = 0;
    for (const RankPair& p : pairs_)
      if (p.items) wanted.push_back(*p.items), bytes += p.items->bytes();
    observer_.begin("compare", bytes);
    const std::vector<std::string> digests =
        item_digests(*share_->model().store, wanted, options_.comparing.threads, [&](i64 done) {
          if (observer_.stop()) throw Error(Code::kInterrupted, "stopped");
          observer_.done(done);
        });
    observer_.end();
    RankHints hints(*share_, pairs_, digests, options_.comparing.threads);
    std::size_t n = 0;
    for (const RankPair& p : pairs_) {
      for (const RankDifference& d : p.differences) add(p, d);
      if (!p.items) {
        unseen_++;
        if (!p.reason.empty()) not_seen(p);
        continue;
      }
      nothing_ += p.items->ranges.empty();
      const std::string& digest = digests[n++];
      out_.report.compared.push_back(p.model->name);
      if (digest == p.dump->sha256) continue;
      std::string hint = hints.of(p);  // g++ 13 destroys members of a braced list twice if a later one throws
      put({.kind = DiffRow::Kind::kValues, .name = p.model->name, .at = "sha256", .hint = std::move(hint)},
          p.dump->sha256, digest);
    }
  }

  void only(bool of_dump, const std::string& name, std::string text) {
    const bool a = of_dump == dump_is_a_;
    DiffRow row{.kind = a ? DiffRow::Kind::kOnlyA : DiffRow::Kind::kOnlyB, .name = name};
    (a ? row.a : row.b) = std::move(text);
    out_.rows.push_back(std::move(row));
  }

  void add(const RankPair& p, const RankDifference& d) {
    using Kind = RankDifference::Kind;
    const DiffRow::Kind kind = d.kind == Kind::kShape   ? DiffRow::Kind::kShape
                               : d.kind == Kind::kDtype ? DiffRow::Kind::kDtype
                               : d.kind == Kind::kCast  ? DiffRow::Kind::kCast
                                                        : DiffRow::Kind::kAttribute;
    put({.kind = kind, .name = p.model->name, .at = d.at, .hint = d.hint}, d.dump, d.model);
  }

  void put(DiffRow row, const std::string& dump, const std::string& model) {
    row.a = dump_is_a_ ? dump : model, row.b = dump_is_a_ ? model : dump;
    row.file = dump_is_a_ ? dump_.path : "";
    out_.rows.push_back(std::move(row));
  }

  void not_seen(const RankPair& p) {
    out_.findings.push_back({.code = Code::kUnequal,
                             .tensor = p.model->name,
                             .message = cat("its values were not compared: ", p.reason)});
    out_.sides.push_back(dump_is_a_ ? 'a' : 'b');
  }

  void not_compared(const std::string& note) {
    out_.report.add({.name = "attributes", .unit = "tensors", .note = cat("not compared: ", note)}, {});
  }

  void attribute_notes() {
    if (!of_dump_.any)
      not_compared("attributes, of which the dump has none, as those of state dicts and of torch's FSDP");
    else if (wants_sequence_ && !of_dump_.sequence_parallel)
      not_compared(
          "sequence_parallel, which the dump marks no tensor with: a run without sequence parallelism");
    if (unset_ > 0)
      not_compared(cat("partition_dim of ", counted(unset_, "tensor"),
                       " that are split, of which the dump does not say along which dimension"));
  }

  // Nothing shows for a run without Megatron-FSDP that a rank should have no items of a tensor.
  void told_of_nothing() {
    if (live_.fsdp || nothing_ == 0) return;
    if (nothing_ < std::ssize(out_.report.compared)) {
      out_.report.add({.name = "values",
                       .unit = "tensors",
                       .note = cat("not compared: those of ", counted(nothing_, "tensor"),
                                   ", of which the rank has no items")},
                      {});
      return;
    }
    out_.report.compared.clear();
    unseen_ += nothing_;
    out_.findings.push_back(
        {.code = Code::kUnequal,
         .message = "the dump has no items of any tensor, so that no value was compared"});
    out_.sides.push_back(dump_is_a_ ? 'a' : 'b');
  }

  void finish(i64 rank) {
    told_of_nothing();
    const i64 only_a = std::ranges::count(out_.rows, DiffRow::Kind::kOnlyA, &DiffRow::kind);
    out_.report.add(
        {.name = "against",
         .status = out_.rows.empty() && unseen_ == 0 ? Check::Status::kPass : Check::Status::kFail,
         .count = std::ssize(out_.report.compared),
         .unit = "tensors",
         .unseen = unseen_ + only_a,
         .unseen_is = "could not be compared"},
        {});
    out_.report.compared_as = cat("the dump of rank ", dump_.rank, " of ", dump_.world, ", with what rank ",
                                  rank, " of ", to_string(share_->grid()), " has ",
                                  !live_.fsdp ? "at run time"
                                  : as_saved_ ? "as Megatron-FSDP saves it"
                                              : "under Megatron-FSDP");
    std::ranges::stable_sort(out_.rows, {}, &DiffRow::kind);
    out_.equal = out_.rows.empty() && unseen_ == 0;
    out_.alike = out_.equal;
  }

  const DiffOptions& options_;
  const LiveSide& live_;
  Observer& observer_;
  bool dump_is_a_ = true, as_saved_ = false, wants_sequence_ = false;
  std::string model_path_;
  RankDump dump_;
  std::unique_ptr<RankShare> share_;
  std::unique_ptr<Expected> expected_;
  std::vector<RankPair> pairs_;
  RankAttributes of_dump_;
  i64 unset_ = 0, unseen_ = 0;
  i64 nothing_ = 0;  // tensors of which the dump has no items
  Diff out_;
};

}  // namespace

Diff diff_with_rank(const std::string& a, const std::string& b, const DiffOptions& options,
                    Observer& observer) {
  refuse_other_options(options);
  return RankDiff(a, b, options, observer).run();
}

}  // namespace mckpt::impl
