// Three steps: open the files of all ranks, gather the states (gathering.h), and place the pieces. A
// piece is placed by summing the items of the ranks before it; then the stretches are cut where the parameter
// itself is cut into keys, so that a key may get parts of two ranks and a rank may feed two keys.
#include "convert/dialects/ranks/states.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "convert/dialects/ranks/gathering.h"
#include "convert/facts/run_facts.h"
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "io/dcp/keys/key.h"
#include "io/file/folder.h"
#include "io/store/names/torch_names.h"
#include "io/store/open/format_ids.h"
#include "io/torch/files.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

i64 sum(std::span<const i64> numbers) {
  i64 total = 0;
  for (i64 n : numbers) total = checked_add(total, n, "the items of a state");
  return total;
}

// Whether a state is one value for the whole parameter, such as a count of steps.
bool is_scalar(std::span<const i64> dims, std::string_view field) {
  return dims.empty() || (field == "step" && Shape(dims).items() == 1);
}

Folder folder_of(const std::string& path, const OpenOptions& opening) {
  try {
    return Folder(path, opening);
  } catch (Error& e) {
    if (e.help().empty())
      e.help(
          "`rank_states` is the folder with the files ..._rank_R.pt, in which every rank saved its states");
    throw;
  }
}

}  // namespace

std::optional<std::vector<RankStretch>> stretches_of(std::span<const i64> held, i64 whole, i64 hsdp) {
  i64 ranks = std::ssize(held), instances = ranks % hsdp == 0 ? hsdp : 1;
  HsdpOuter outer = HsdpOuter::kShard;
  if (sum(held) != whole) {
    outer = HsdpOuter::kReplicate;
    if (std::ranges::all_of(held, [&](i64 n) { return n == whole; })) instances = ranks;
    for (i64 o = 0, each = ranks / instances; o < instances; o++)
      if (sum(held.subspan(static_cast<std::size_t>(o * each), static_cast<std::size_t>(each))) != whole)
        return std::nullopt;
  }
  std::vector<std::size_t> order(held.size());
  std::iota(order.begin(), order.end(), 0);
  auto place = [&](std::size_t d) { return place_of(static_cast<i64>(d), ranks, instances, outer); };
  std::ranges::sort(order, {}, [&](std::size_t d) { return std::tuple(place(d).replica, place(d).shard); });
  std::vector<RankStretch> out(held.size());
  i64 at = 0;
  for (std::size_t d : order) {
    if (place(d).shard == 0) at = 0;
    out[d] = {at, at + held[d], place(d).replica > 0};
    at += held[d];
  }
  return out;
}

bool is_made_of_rows(std::span<const i64> piece, const Shape& parameter) {
  if (piece.empty()) return false;
  std::span<const i64> whole = parameter.dims();
  bool rows = piece.size() == whole.size() && std::ranges::equal(piece.subspan(1), whole.subspan(1));
  i64 items = Shape(piece).items(), row = parameter.row_items();
  return (rows || piece.size() == 1) && (row == 0 ? items == 0 : items % row == 0);
}

const ModelParameter& RankStates::State::of() const { return (*parameters)[parameter]; }
const TorchTable& RankStates::table(i32 file) const { return opened_[file].file->table; }

RankStates::RankStates(const std::string& folder, OpenOptions opening, const ModelMap& map,
                       const RunSetup& setup, Grid grid, const Adjust& adjust) {
  opening_ = std::move(opening);
  open(folder);
  i64 ranks = check_ranks();
  if (grid.tp <= 0 || ranks % grid.tp != 0)
    throw Error(Code::kBadGrid, "the number of ranks does not divide by the tensor-parallel size")
        .file(folder)
        .expected(cat("a multiple of ", grid.tp))
        .found(ranks);
  grid.dp = ranks / grid.tp;
  check_grid(grid);
  Gathering all(*this, map, setup, grid, adjust);
  for (i32 f = 0; f < static_cast<i32>(opened_.size()); f++) all.add(f, rank_name(opened_[f].path)->rank);
  all.refuse_unknown();
  if (std::optional<Finding> without = all.without_states()) findings_.push_back(std::move(*without));
  for (const State& s : all.states()) {
    const Held& first = s.held[0];
    if (is_scalar(table(first.file).dims(first.row), s.field.substr(1)))
      add_copies(s, map.model());
    else
      place(s, s.of().expert() ? grid.edp() : grid.dp * grid.cp, grid.hsdp, map.model());
  }
  if (!tensors_.empty()) return;
  throw Error(Code::kUnaccounted, "the ranks' files contain no optimizer states")
      .file(folder)
      .expected("tensors optimizer.state.<parameter>.exp_avg, or state.<parameter>.exp_avg");
}

RankStates::~RankStates() = default;

void RankStates::open(const std::string& path) {
  Folder folder = folder_of(path, opening_);
  root_ = folder.path();
  format_ = Format::kTorchRanks;
  std::vector<std::string> names;
  for (const FolderEntry& e : folder.entries())
    if (!e.folder && has_torch_suffix(e.name) && rank_name(e.name)) names.push_back(e.name);
  opened_ = open_torch_files(folder, std::move(names));
  for (const OpenedTorchFile& o : opened_) {
    files_.push_back({o.path, o.bytes});
    if (o.problem) {
      findings_.push_back(*o.problem);
      continue;
    }
    for (const std::vector<Finding>* list : {&o.file->table.findings(), &o.file->findings})
      for (Finding f : *list) {
        f.file = o.path;
        findings_.push_back(std::move(f));
      }
  }
}

// Returns the number of ranks. Throws the first problem of any file, and kShardMissing if a rank's file is
// missing.
i64 RankStates::check_ranks() const {
  for (const Finding& f : findings_)
    if (!f.warning) throw Error(f.code, f.message).file(cat(root_, "/", f.file)).tensor(f.tensor);
  std::set<i64> there;
  i64 ranks = 0;
  for (const OpenedTorchFile& o : opened_) {
    RankName n = *rank_name(o.path);
    there.insert(n.rank);
    ranks = std::max({ranks, n.rank + 1, n.world});
  }
  if (ranks > 0 && std::ssize(there) == ranks) return ranks;
  i64 missing = 0;
  while (there.contains(missing)) missing++;
  throw Error(Code::kShardMissing, "the states need the files of all ranks, and one is missing")
      .file(root_)
      .expected("files ..._rank_0.pt, ..._rank_1.pt and so on")
      .found(there.empty() ? "none" : cat("none of rank ", missing, " of ", ranks));
}

Error RankStates::refusal(const State& s, const Held& h, const char* what) const {
  GlobalShape whole = global_shape(*s.of().holding, s.of().part.count);
  Error e(Code::kCounterpart, what);
  e.file(cat(root_, "/", file_label(*this, h.file)))
      .tensor(cat(s.prefix, s.of().global_name, s.field))
      .note(cat("the parameter has the global shape ", to_string(whole.shape), ", ",
                to_string(s.of().shape()), " on each of ", s.of().part.count, " tensor-parallel ranks"))
      .help(
          "check `source_tp`, `source_ep`, `source_etp` and `source_hsdp`; `weights_only` skips the states");
  return e;
}

// The number of items in a rank's piece. A piece is rows of the parameter, or its items in one dimension; a
// DTensor also records the shape of the whole, which is checked. Throws kCounterpart.
i64 RankStates::items_of(const State& s, const Held& h) const {
  std::span<const i64> dims = table(h.file).dims(h.row);
  if (const TorchSharding* sharding = table(h.file).sharding(h.row)) {
    GlobalShape whole = global_shape(*s.of().holding, s.of().part.count);
    if (!std::ranges::equal(sharding->global, whole.shape.dims()))
      throw refusal(s, h, "a state does not have the shape of its parameter")
          .expected(to_string(whole.shape))
          .found(dims_to_string(sharding->global));
  }
  if (!is_made_of_rows(dims, s.of().shape()))
    throw refusal(s, h, "a rank's piece of a state is not made of rows of its parameter")
        .expected(cat("a multiple of ", counted(s.of().shape().row_items(), "item")))
        .found(cat("a local shape of ", dims_to_string(dims)));
  if (!table(h.file).strides(h.row).empty())
    throw refusal(s, h, "a rank's piece of a state is a view that skips items").found(dims_to_string(dims));
  return Shape(dims).items();
}

// Cuts the stretches of all ranks where the parameter is cut into keys. The cuts follow from the number of
// items of the whole parameter, never from the number of items of a rank's piece.
void RankStates::place(const State& s, i64 sharers, i64 hsdp, const ModelConfig& model) {
  std::vector<i64> items(static_cast<std::size_t>(sharers));
  for (const Held& h : s.held) items[h.place] = items_of(s, h);
  std::optional<std::vector<RankStretch>> stretches = stretches_of(items, s.of().shape().items(), hsdp);
  if (!stretches) {
    std::vector<std::string> shapes;
    for (const Held& h : s.held)
      shapes.push_back(cat("rank ", h.rank, " ", dims_to_string(table(h.file).dims(h.row))));
    throw refusal(s, s.held[0], "the ranks' pieces of a state do not add up to their parameter")
        .expected(counted(s.of().shape().items(), "item"))
        .found(cat(counted(sum(items), "item"), ": ", listed(shapes, 8)));
  }
  i64 row = s.of().shape().row_items();
  for (const Piece& piece : stored_pieces(s.of(), model)) {
    ItemRange part = mckpt::impl::items_of(piece, row);
    for (const Held& h : s.held) {
      const RankStretch& mine = (*stretches)[h.place];
      i64 begin = std::max(part.begin, mine.begin), end = std::min(part.end, mine.end);
      if (begin >= end) continue;
      FsdpTensor t =
          fsdp_tensor(*s.parameters, s.parameter, piece, {(begin - part.begin) / row, (end - begin) / row});
      DType dtype = table(h.file).dtype(h.row);
      Tensor& to = tensor(cat(s.prefix, *model_key(t.key), s.field), dtype, t.global.dims());
      if (to.dtype != dtype)
        throw refusal(s, h, "the ranks' pieces of a state have different types")
            .expected(dtype_name(to.dtype))
            .found(dtype_name(dtype));
      // Tensor-parallel ranks all hold what is not split among them: the first one counts, the others are
      // replicas.
      bool replica = mine.replica ||
                     std::ranges::any_of(to.pieces, [&](const Portion& p) { return p.offsets == t.offsets; });
      to.pieces.push_back(
          {h.file, replica, h.row, begin - mine.begin, std::move(t.offsets), std::move(t.sizes)});
    }
  }
}

// Adds a state that is one value for the whole parameter. A real run stores it once for every key of the
// parameter, and so does this.
void RankStates::add_copies(const State& s, const ModelConfig& model) {
  const Held& h = s.held[0];
  std::span<const i64> dims = table(h.file).dims(h.row);
  for (const Piece& piece : stored_pieces(s.of(), model)) {
    FsdpTensor t = fsdp_tensor(*s.parameters, s.parameter, piece, {});
    Tensor& to = tensor(cat(s.prefix, *model_key(t.key), s.field), table(h.file).dtype(h.row), dims);
    to.pieces.push_back(
        {h.file, !to.pieces.empty(), h.row, 0, std::vector<i64>(dims.size()), {dims.begin(), dims.end()}});
  }
}

std::vector<std::string> RankStates::not_taken() const {
  std::set<std::string> names;
  for (const OpenedTorchFile& o : opened_) {
    for (const TorchTable::Item& object : o.file->table.objects())
      if (!is_entry_of_facts(object.name)) names.insert(object.name);
    for (i64 row = 0; row < o.file->table.size(); row++)
      if (!state_name(whole_state_name(o.file->table.name(row)))) names.emplace(o.file->table.name(row));
  }
  return {names.begin(), names.end()};
}

RunFacts RankStates::facts() const {
  RunFacts out;
  for (const OpenedTorchFile& o : opened_)
    if (rank_name(o.path)->rank == 0)
      for (const TorchTable::Item& object : o.file->table.objects()) out.add_entry(object.name, object.value);
  return out;
}

RankStates::Tensor& RankStates::tensor(std::string name, DType dtype, std::span<const i64> dims) {
  auto [at, fresh] = by_name_.try_emplace(std::move(name), tensor_count());
  if (fresh) tensors_.push_back({at->first, dtype, {dims.begin(), dims.end()}, {}});
  return tensors_[at->second];
}

Chunk RankStates::chunk(i64 t, i64 index) const {
  const Portion& p = at(t).pieces[index];
  i64 bytes = dtype_bytes(at(t).dtype, Shape(p.sizes).items());
  return {.offsets = p.offsets,
          .sizes = p.sizes,
          .file = p.file,
          .rank = static_cast<i32>(rank_name(files_[p.file].path)->rank),
          .record_offset = table(p.file).offset(p.row) + dtype_bytes(at(t).dtype, p.first_item),
          .record_bytes = bytes,
          .replica = p.replica};
}

ChunkData RankStates::resolve(i64 t, i64 index) const {
  const Portion& p = at(t).pieces[index];
  ChunkData out{.file = p.file, .offset = chunk(t, index).record_offset, .dtype = at(t).dtype};
  const TorchFile& file = *opened_[p.file].file;
  out.big_endian = file.big_endian;
  auto behind = std::ranges::upper_bound(file.checksums, out.offset, {}, &Checksum::offset);
  if (behind != file.checksums.begin() && out.offset < behind[-1].offset + behind[-1].bytes) {
    out.checksum = behind[-1];
    out.checksum->file = p.file;
    out.checksum->tensor = t;
  }
  return out;
}

}  // namespace mckpt::impl
