// Pairs weights with main weights by their names, and reads both.
#include "convert/compare/checks/main_weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/compare/checks/module_copies.h"
#include "convert/compare/differences/counting.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/observer.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "io/copy/observed_sink.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/file/parallel.h"
#include "io/store/findings.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"
#include "io/verify/verify.h"
#include "io/zero/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kBlockItems = i64{1} << 20;

struct Pair {
  i64 weight, main;
};

// Megatron's names, and TransformerEngine's in the states of FusedAdam.
bool is_main_weight(std::string_view field) {
  return field == "fp32_param" || field == "param" || field == "master_param";
}

// The weight and main weight of each parameter whose shapes are equal; what a run computes with in FP8 is not
// a rounded main weight.
std::vector<Pair> pairs_of(const Store& store) {
  const DcpDialect dialect = store.driver().dialect.value_or(DcpDialect::kFsdpDtensor);
  NameMap<std::string_view, i64> weights;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (DcpKey key = split_key(dialect, store.name(t)); key.section == DcpKey::Section::kModel)
      weights.emplace(key.parameter, t);
  std::vector<Pair> out;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    const DcpKey key = split_key(dialect, store.name(t));
    if (key.section != DcpKey::Section::kState || !is_main_weight(key.field)) continue;
    auto weight = weights.find(key.parameter);
    if (weight == weights.end() || store.dtype(t) != DType::kF32) continue;
    if (!is_castable(store.dtype(weight->second)) ||
        !std::ranges::equal(store.dims(weight->second), store.dims(t)))
      continue;
    out.push_back({weight->second, t});
  }
  return out;
}

// How many weights are not the rounded main weight, and the first of them.
struct Unlike {
  i64 items = 0, first = -1;
  float weight = 0, main = 0;
};

// The buffers with which one thread compares. A reader keeps the tensor open that it read last, so weights
// and main weights have one each.
class PairReader {
 public:
  PairReader(const Store& store, const StoreFiles& files, Observer& observer)
      : store_(store), observer_(observer), weights_(store, files), mains_(store, files) {}

  Unlike unlike_items(const Pair& pair) {
    Unlike out;
    const DType type = store_.dtype(pair.weight);
    const ItemCast cast{.from = DType::kF32, .via = type, .to = type};
    const i64 items = store_.shape(pair.weight).items();
    for (i64 begin = 0; begin < items; begin += kBlockItems) {
      check_stop(observer_);
      const i64 end = std::min(items, begin + kBlockItems);
      const std::vector<u8> weight = items_of(weights_, pair.weight, begin, end);
      const std::vector<u8> main = items_of(mains_, pair.main, begin, end);
      std::vector<u8> rounded(weight.size());
      cast_items(cast, main.data(), rounded.data(), end - begin);
      adopt_nans(type, weight, rounded);
      if (rounded != weight) count(type, begin, weight, main, rounded, out);
      observer_.done(std::ssize(weight) + std::ssize(main));
    }
    return out;
  }

 private:
  static std::vector<u8> items_of(TensorReader& reader, i64 tensor, i64 begin, i64 end) {
    std::vector<u8> out;
    reader.read(tensor, begin, end,
                [&](std::span<const u8> bytes, i64) { out.insert(out.end(), bytes.begin(), bytes.end()); });
    return out;
  }

  static void count(DType type, i64 begin, const std::vector<u8>& weight, const std::vector<u8>& main,
                    const std::vector<u8>& rounded, Unlike& out) {
    const i64 item = dtype_bytes(type, 1), main_item = dtype_bytes(DType::kF32, 1);
    for (i64 i = 0; i * item < std::ssize(weight); i++) {
      if (std::memcmp(&rounded[i * item], &weight[i * item], static_cast<std::size_t>(item)) == 0) continue;
      if (out.items++ > 0) continue;
      out.first = begin + i;
      out.weight = value_of(type, &weight[i * item]), out.main = value_of(DType::kF32, &main[i * main_item]);
    }
  }

  const Store& store_;
  Observer& observer_;
  TensorReader weights_, mains_;
};

// Where most values differ, the run may keep its parameters in FP8 and save what they stand for: a warning.
// DeepSpeed does not.
Finding finding_of(const Store& store, const Pair& pair, const Unlike& unlike) {
  const i64 items = store.shape(pair.weight).items();
  const bool exact = store.dtype(pair.weight) == DType::kF32,
             most = !store.driver().zero && unlike.items * 2 > items;
  const std::string at = dims_to_string(item_index(unlike.first, store.dims(pair.weight)));
  return {
      .code = Code::kCounterpart,
      .tensor = std::string(store.name(pair.weight)),
      .message = cat(
          counted(unlike.items, "value"), " of ", with_commas(items),
          unlike.items == 1 ? " differs" : " differ", " from the main weight of the optimizer, ",
          escaped(store.name(pair.main)), exact ? "" : ", rounded", "; first at ", at, ": ", unlike.weight,
          " and ", unlike.main,
          most ? "; so it is where a run keeps its parameters in FP8, and in weights of another save" : ""),
      .help =
          "one of the two was changed, or is of another save: a run that loads both computes one step with the weight, and goes on from the main weight",
      .warning = most};
}

i64 bytes_of(const Store& store, const std::vector<Pair>& pairs) {
  i64 bytes = 0;
  for (const Pair& p : pairs) {
    const i64 items = store.shape(p.weight).items();
    bytes += dtype_bytes(store.dtype(p.weight), items) + dtype_bytes(store.dtype(p.main), items);
  }
  return bytes;
}

// Whether the report has a finding about one of the two: the check that read all data was first.
bool is_told(const Store& store, const Pair& pair, const VerifyReport& report) {
  return std::ranges::any_of(report.findings, [&](const Finding& f) {
    return !f.tensor.empty() && (f.tensor == store.name(pair.weight) || f.tensor == store.name(pair.main));
  });
}

// The copies of DeepSpeed ZeRO and the main weights that they are of. Shards of tensor-parallel ranks are
// parts of a main weight, and of the files of these ranks what all have is whole.
std::vector<Pair> zero_pairs(const ZeroStore& store, std::vector<std::string_view>& shards) {
  NameMap<std::string_view, i64> tensors;
  for (i64 t = 0; t < store.tensor_count(); t++) tensors.emplace(store.name(t), t);
  std::vector<Pair> out;
  for (const ZeroStore::ModuleCopy& copy : store.module_copies()) {
    const auto weight = tensors.find(copy.name), main = tensors.find(copy.of);
    if (weight == tensors.end() || main == tensors.end()) continue;  // the part of the optimizer is missing
    if (store.dtype(main->second) != DType::kF32 || !is_castable(store.dtype(weight->second))) continue;
    if (std::ranges::equal(store.dims(weight->second), store.dims(main->second)))
      out.push_back({weight->second, main->second});
    else
      shards.push_back(copy.name);
  }
  return out;
}

// `findings`: about weights that are in no pair.
void compare_pairs(const Store& store, const std::vector<Pair>& pairs, std::vector<Finding> findings,
                   std::string note, int threads, Observer& observer, VerifyReport& report) {
  if (pairs.empty() && findings.empty() && note.empty()) return;
  const StoreFiles files(store);
  PlacedFindings found;
  std::vector<std::unique_ptr<PairReader>> readers;
  for (int i = 0; i < threads; i++) readers.push_back(std::make_unique<PairReader>(store, files, observer));
  std::atomic<i64> unread = 0;
  observer.begin("verify main weights", bytes_of(store, pairs));
  parallel_for(std::ssize(pairs), threads, [&](int worker, i64 p) {
    try {
      const Unlike unlike = readers[worker]->unlike_items(pairs[p]);
      if (unlike.items > 0) found.add(p, finding_of(store, pairs[p], unlike));
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      unread++;
      if (!is_told(store, pairs[p], report)) found.add(p, to_finding(e));
    }
  });
  observer.end();
  std::ranges::move(found.take(), std::back_inserter(findings));
  Check check{.name = "main",
              .count = std::ssize(pairs) - unread,
              .unit = "tensors",
              .unseen = unread,
              .note = std::move(note)};
  check.status =
      pairs.empty() && findings.empty()
          ? Check::Status::kNone
          : std::max(status_of(findings), unread > 0 ? Check::Status::kWarn : Check::Status::kPass);
  report.add(std::move(check), std::move(findings));
}

}  // namespace

void check_main_weights(const Store& store, int threads, Observer& observer, VerifyReport& report) {
  if (!store.driver().zero) return compare_pairs(store, pairs_of(store), {}, "", threads, observer, report);
  const std::unique_ptr<Store> opened = open_store(store.root(), store.opening());
  auto* zero = dynamic_cast<ZeroStore*>(opened.get());
  if (!zero) return;
  zero->list_module_copies([](const ZeroStore::ModuleCopy&) { return true; });
  std::vector<std::string_view> shards;
  std::vector<Finding> findings;
  const std::vector<Pair> pairs = zero_pairs(*zero, shards);
  if (tensor_parallel_ranks(store).empty())
    for (std::string_view name : std::exchange(shards, {}))
      findings.push_back({.code = Code::kCounterpart,
                          .tensor = std::string(name),
                          .message = "the weight has another shape than its main weight in the optimizer",
                          .help = "one of the two is of another save"});
  const std::string note =
      shards.empty() ? ""
                     : cat("not compared: ", counted(std::ssize(shards), "weight"),
                           " whose main weights have other shapes, as shards of tensor-parallel ranks have: ",
                           listed(shards, 3));
  compare_pairs(*zero, pairs, std::move(findings), note, threads, observer, report);
}

}  // namespace mckpt::impl
