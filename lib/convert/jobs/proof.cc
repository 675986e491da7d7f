// Every task is planned once, by whichever thread is free. A Plan has already proved that each destination
// region is written once, and this file adds what no single task can know:
//
//   written   the regions of all tasks differ, and their items sum to the items of the tensor
//   read      the regions that tasks read differ, too; a region that several tasks read in part keeps its runs until
//             its last part is read, and the runs together must tile it
//
// Regions that a task reads whole, nearly all, cost a place in a list and no runs.
#include "convert/jobs/proof.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

#include "convert/jobs/tensor_account.h"
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "core/items/plan.h"
#include "core/items/tiling.h"
#include "io/copy/job.h"
#include "io/dcp/write/layout.h"
#include "io/file/parallel.h"
#include "io/store/store.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace {

// A number that several threads change. It can be copied, so that a vector can hold it.
template <typename T>
struct Shared : std::atomic<T> {
  using std::atomic<T>::atomic;
  using std::atomic<T>::operator=;
  Shared(const Shared& o) : std::atomic<T>(o.load()) {}
};

// The tensor of the other side that a tensor is made of, or used for: none, one, or many. Thread-safe.
class Partner {
 public:
  static constexpr i32 kNone = -1, kMany = -2;

  void add(i32 other) {
    i32 before = kNone;
    if (one_.compare_exchange_strong(before, other, std::memory_order_relaxed) || before == other) return;
    one_.store(kMany, std::memory_order_relaxed);
  }
  bool none() const { return one_ == kNone; }
  bool many() const { return one_ == kMany; }
  i32 one() const { return one_; }

 private:
  Shared<i32> one_ = kNone;
};

struct SourceState {
  Shared<i64> read = 0;  // items of regions that are read whole
  Shared<bool> unpadded = false;
  Made computed = Made::kCopied;  // or kDequantized, kQuantized
  bool adapted = false;
  Partner target;  // tied tensors of the result do not count
};

struct TargetState {
  Shared<i64> written = 0;
  Partner source;
  Shared<bool> padded = false, changed = false, tied = false, padding = false, constant = false;
};

// A region by its place: two tasks that read or write one region have the same place.
struct RegionPlace {
  i32 tensor, file;
  i64 offset;

  auto operator<=>(const RegionPlace&) const = default;
};

RegionPlace place_of(const Region& r, i32 tensor) { return {tensor, r.file, r.offset}; }

// One proof: run() is called once. Threads share the states of the tensors (atomics) and the incomplete parts
// (a mutex); all else is each worker's own.
class Proof {
 public:
  Proof(const CopyJob& job, const ProofInput& input, TensorAccount* tensors)
      : job_(job),
        in_(input),
        tensors_(tensors),
        sources_(static_cast<std::size_t>(input.source.count)),
        targets_(static_cast<std::size_t>(input.target.count)),
        workers_(static_cast<std::size_t>(input.threads)) {
    for (i64 t : input.tied) targets_[t].tied = true;
    for (i64 t : input.padding) targets_[t].padding = true;
    for (i64 t : input.constant) targets_[t].constant = true;
    for (i64 t : input.dequantized) sources_[t].computed = Made::kDequantized;
    for (i64 t : input.quantized) sources_[t].computed = Made::kQuantized;
    for (i64 t : input.adapted) sources_[t].adapted = true;
  }

  Account run() {
    parallel_for(job_.task_count(), in_.threads, [&](int worker, i64 index) {
      if (in_.stop && in_.stop()) throw Error(Code::kInterrupted, "interrupted while proving");
      CopyTask task = job_.outline(index);
      look_at(task, workers_[worker]);
    });
    refuse_twice(&Worker::written, in_.target, "is written by two tasks");
    refuse_twice(&Worker::read, in_.source, "is read by two tasks");
    refuse_parts();
    Account all = account();
    if (tensors_) list_tensors();
    return all;
  }

 private:
  // The findings of one thread. Regions that a task writes, or reads whole, are listed and compared at the
  // end.
  struct Worker {
    std::vector<RegionPlace> written, read;
    std::vector<ItemRun> runs;                    // of the present task; the slot is the region of the source
    std::vector<TensorUse> uses{};                // if tensors are listed
    std::vector<std::pair<i32, i64>> unwanted{};  // likewise: tensors of the source, items
  };
  // A region that several tasks read, each in part: what was read of it so far.
  struct Part {
    i64 items = 0;
    std::vector<ItemRun> runs;
  };

  void look_at(const CopyTask& task, Worker& worker) {
    const Plan& plan = task.plan;
    for (i32 d = 0; d < plan.destination_count(); d++) {
      const Region& r = plan.destination(d);
      if (r.items == 0) continue;
      i32 tensor = job_.target_tensor(r);
      worker.written.push_back(place_of(r, tensor));
      if (tensor < 0) continue;
      targets_[tensor].written += r.items;
      if (!task.cast.identity()) targets_[tensor].changed = true;
    }
    worker.runs.clear();
    i32 region = -1, source = -1;
    for (const PlannedMove& m : plan.moves()) {
      i32 target = job_.target_tensor(plan.destination(m.destination));
      TargetState* state = target < 0 ? nullptr : &targets_[target];
      if (m.move.kind == MoveKind::kZero) {
        if (state) state->padded = true;
        continue;
      }
      bool again = m.move.kind == MoveKind::kAgain;
      if (m.move.slot != region) region = m.move.slot, source = job_.source_tensor(plan.source(region));
      if (state && source >= 0) state->source.add(source);
      if (state && source >= 0 && (sources_[source].computed != Made::kCopied || sources_[source].adapted))
        state->changed = true;
      if (state && state->tied) continue;
      if (state && source >= 0) sources_[source].target.add(target);
      if (!again) worker.runs.push_back(m.move.source());
    }
    worker.runs.insert(worker.runs.end(), task.unwanted.begin(), task.unwanted.end());
    if (tensors_) list_uses(task, worker);
    for (const ItemRun& run : task.unwanted)
      if (i32 tensor = job_.source_tensor(plan.source(run.slot)); tensor >= 0)
        sources_[tensor].unpadded = true;
    look_at_reads(plan, worker);
  }

  // The uses of one task, for the account tensor by tensor.
  void list_uses(const CopyTask& task, Worker& worker) const {
    const Plan& plan = task.plan;
    std::size_t begin = worker.uses.size();
    for (const PlannedMove& m : plan.moves()) {
      const Region& to = plan.destination(m.destination);
      i32 target = job_.target_tensor(to);
      bool zero = m.move.kind == MoveKind::kZero;
      i32 source = zero ? -1 : job_.source_tensor(plan.source(m.move.slot));
      if (target < 0 || (!zero && source < 0) || m.move.kind == MoveKind::kEqual) continue;
      worker.uses.push_back({target, source, m.move.items(), zero ? ItemCast{} : task.cast, to.file,
                             to.offset + m.move.to * to.item_bytes});
    }
    merge_uses(worker.uses, begin);
    for (const ItemRun& run : task.unwanted)
      worker.unwanted.emplace_back(job_.source_tensor(plan.source(run.slot)), run.items());
  }

  // The account tensor by tensor, of what all threads have listed.
  void list_tensors() {
    TensorAccount& out = *tensors_;
    out = {{}, {}, std::vector<i64>(sources_.size())};
    for (Worker& w : workers_) {
      out.uses.insert(out.uses.end(), w.uses.begin(), w.uses.end());
      for (auto [source, items] : w.unwanted)
        if (source >= 0) out.unread[source] += items;
    }
    merge_uses(out.uses);
    order_uses(out.uses);
    for (const std::vector<i64>* left : {&in_.dropped, &in_.copies})
      for (i64 t : *left) out.unread[t] = std::max<i64>(0, in_.source.items(t));
    for (i64 t = 0; t < in_.target.count; t++)
      out.made.push_back(in_.target.items(t) < 0 ? Made::kAbsent : made(t));
  }

  // Sorts the runs that the task reads by region, and judges region by region.
  void look_at_reads(const Plan& plan, Worker& worker) {
    std::vector<ItemRun>& runs = worker.runs;
    if (!std::ranges::is_sorted(runs, {}, &ItemRun::slot)) std::ranges::stable_sort(runs, {}, &ItemRun::slot);
    for (std::size_t i = 0, next; i < runs.size(); i = next) {
      next = i;
      while (next < runs.size() && runs[next].slot == runs[i].slot) next++;
      look_at_region(plan.source(runs[i].slot), std::span(runs).subspan(i, next - i), worker);
    }
  }

  void look_at_region(const Region& r, std::span<const ItemRun> runs, Worker& worker) {
    i32 tensor = job_.source_tensor(r);
    if (tensor < 0) return;
    if (i64 items = items_of(runs); items == r.items) {
      check_whole(r, tensor, runs);
      worker.read.push_back(place_of(r, tensor));
      return;
    }
    std::lock_guard lock(mutex_);
    auto at = parts_.try_emplace(place_of(r, tensor)).first;
    Part& part = at->second;
    part.items = r.items;
    part.runs.insert(part.runs.end(), runs.begin(), runs.end());
    if (items_of(part.runs) < r.items) return;
    check_whole(r, tensor, part.runs);
    worker.read.push_back(at->first);
    parts_.erase(at);
  }

  void check_whole(const Region& r, i32 tensor, std::span<const ItemRun> runs) {
    if (auto fault = tiling_fault(runs, r.items)) refuse_item(tensor, *fault, r.items, items_of(runs));
    sources_[tensor].read += r.items;
  }

  [[noreturn]] void refuse_item(i64 tensor, TilingFault fault, i64 items, i64 read) const {
    throw Error(Code::kNotTiled, cat("item ", fault.item, " of a stored part of a source tensor ",
                                     fault.times == 0 ? "is read by no move" : "is read twice"))
        .tensor(in_.source.name(tensor))
        .expected(cat("each of ", counted(items, "item"), " read once"))
        .found(cat(counted(read, "item"), " read"));
  }

  void refuse_twice(std::vector<RegionPlace> Worker::*places, const ProofSide& side, const char* what) {
    std::vector<RegionPlace> all;
    for (Worker& w : workers_) {
      all.insert(all.end(), (w.*places).begin(), (w.*places).end());
      (w.*places) = {};
    }
    std::ranges::sort(all);
    auto twice = std::ranges::adjacent_find(all);
    if (twice == all.end()) return;
    throw Error(Code::kNotTiled, cat("a piece of a tensor ", what))
        .tensor(twice->tensor < 0 ? "an object" : side.name(twice->tensor))
        .expected("each piece in one task");
  }

  // The parts that are left were never completed, so some item of each was not read.
  void refuse_parts() const {
    for (const auto& [place, part] : parts_)
      if (auto fault = tiling_fault(part.runs, part.items))
        refuse_item(place.tensor, *fault, part.items, items_of(part.runs));
  }

  Account account() const {
    Account a;
    std::vector<std::string> wrong;
    account_of_source(a, wrong);
    account_of_target(a, wrong);
    if (wrong.empty()) return a;
    throw Error(Code::kUnproved,
                cat("the plan does not do what was announced for ", counted(std::ssize(wrong), "tensor")))
        .each_note(wrong)
        .help("nothing was written; the fault is in the tables or rules that the plan was made with");
  }

  void account_of_source(Account& a, std::vector<std::string>& wrong) const {
    std::vector<u8> left(sources_.size());
    for (i64 t : in_.dropped) left[t] = 1;
    for (i64 t : in_.copies) left[t] = 2;
    for (i64 t = 0; t < in_.source.count; t++) {
      i64 items = in_.source.items(t), read = sources_[t].read;
      if (items < 0) continue;
      u8 out = left[t];
      a.tensors_in++;
      a.dropped += out == 1, a.copies += out == 2, a.unpadded += sources_[t].unpadded;
      if (read != (out ? 0 : items))
        wrong.push_back(cat(escaped(in_.source.name(t)), ", of the source: expected ",
                            out ? "0 items read, as it is left out" : cat(counted(items, "item"), " read"),
                            ", found ", read));
    }
  }

  // pre: the target has a tensor of this number.
  Made made(i64 t) const {
    const TargetState& s = targets_[t];
    if (s.source.none() && in_.target.items(t) > 0 && !s.padding) return Made::kInvented;
    if (s.tied) return Made::kTied;
    if (s.padding) return Made::kSplit;
    if (s.source.many()) return Made::kFused;
    if (s.source.one() < 0) return Made::kCopied;
    const SourceState& source = sources_[s.source.one()];
    return source.target.many() ? Made::kSplit : source.computed;
  }

  void account_of_target(Account& a, std::vector<std::string>& wrong) const {
    for (i64 t = 0; t < in_.target.count; t++) {
      i64 items = in_.target.items(t);
      if (items < 0) continue;
      const TargetState& s = targets_[t];
      a.tensors_out++;
      a.padded += s.padded, a.changed += s.changed;
      Made kind = made(t);
      bool invented = kind == Made::kInvented && !s.constant;
      i64* counts[] = {nullptr,        &a.copied,    &a.fused, &a.split,
                       &a.dequantized, &a.quantized, &a.tied,  &a.invented};  // by Made
      ++*counts[static_cast<int>(kind)];
      if (s.written != items)
        wrong.push_back(cat(escaped(in_.target.name(t)), ", of the result: expected ", counted(items, "item"),
                            " written, found ", s.written.load()));
      else if (invented)
        wrong.push_back(cat(escaped(in_.target.name(t)), ", of the result: expected ", counted(items, "item"),
                            " of the source, found 0"));
    }
  }

  const CopyJob& job_;
  const ProofInput& in_;
  TensorAccount* tensors_;  // null: not asked for
  std::vector<SourceState> sources_;
  std::vector<TargetState> targets_;
  std::vector<Worker> workers_;
  std::mutex mutex_;
  std::map<RegionPlace, Part> parts_;
};

}  // namespace

ProofSide side_of(const Store& store) {
  return {store.tensor_count(), [&](i64 t) { return std::string(store.name(t)); },
          [&](i64 t) { return store.shape(t).items(); }};
}

ProofSide side_of(const DcpLayout& layout) {
  auto key = [&](i64 t) -> const DcpLayoutKey& { return layout.key(static_cast<i32>(t)); };
  return {layout.key_count(), [=](i64 t) { return key(t).name.text; },
          [=](i64 t) { return key(t).shape.items(); }};
}

ProofSide side_of(const KeyTable& keys) {
  return {keys.size(), [&](i64 t) { return keys[static_cast<i32>(t)].name; },
          [&](i64 t) { return keys[static_cast<i32>(t)].shape.items(); }};
}

Account prove(const CopyJob& job, const ProofInput& input, TensorAccount* tensors) {
  return Proof(job, input, tensors).run();
}

}  // namespace mckpt::impl
