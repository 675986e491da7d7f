// A check lists the stretches of parameters that a rank has, cuts them into pieces, and lets each thread
// compare pieces: it reads the piece from the files through a HoldingReader, and from the device through a
// DeviceReader.
#include "live/model/check.h"

#include <algorithm>

#include "convert/jobs/holding_reader.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "io/file/parallel.h"
#include "io/store/store.h"
#include "live/device/device_bytes.h"
#include "live/model/group.h"
#include "live/model/model.h"
#include "mappings/model/cp_rows.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

struct LiveCheck::Worker {
  Worker(const Store& store, const StoreFiles& files, Device& device) : source(store, files), live(device) {}
  HoldingReader source;
  DeviceReader live;
};

LiveCheck::LiveCheck(const LiveModel& model, const Store& source, const LiveCheckOptions& options)
    : model_(model), options_(options), files_(source) {
  for (int t = 0; t < options.threads; t++)
    workers_.push_back(std::make_unique<Worker>(source, files_, model.device()));
  const LiveSetup& setup = model.setup();
  as_stored_ = model.map().parameters(
      setup.grid, model.cell(), {setup.run.vocab_rows, std::nullopt, setup.run.groups, setup.run.spelling});
}

LiveCheck::~LiveCheck() = default;

// Adds a stretch of a parameter, cut into pieces of 4 Mi items so that all threads have something to do.
void LiveCheck::add(i32 parameter, ItemRange items, DType via, DType type, std::span<const u8> bytes) {
  constexpr i64 kPieceItems = 4 << 20;
  if (dtype_bytes(type, items.items()) != std::ssize(bytes))
    throw Error(Code::kInternal, "the bytes of a parameter do not fit the number of its items");
  for (i64 begin = items.begin; begin < items.end; begin += kPieceItems) {
    ItemRange piece{begin, std::min(items.end, begin + kPieceItems)};
    i64 at = dtype_bytes(type, begin - items.begin), size = dtype_bytes(type, piece.items());
    pieces_.push_back({parameter, piece, via, type,
                       bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size))});
  }
  bytes_ += std::ssize(bytes);
}

// Compares one piece. Returns the first byte that differs, counted from the beginning of the piece; -1: none
// does.
i64 LiveCheck::first_wrong_byte(const Piece& piece, Worker& worker) const {
  ModelParameter p = as_stored_[piece.parameter];
  p.dtype = piece.via, p.typed_by_run = true;
  i64 at = 0, first_wrong = -1;
  worker.source.read(p, piece.items, piece.type, [&](std::span<const u8> want) {
    while (!want.empty() && first_wrong < 0) {
      i64 n = std::min(std::ssize(want), DeviceReader::kMostBytes);
      std::span<const u8> mine = worker.live.read(piece.bytes.data() + at, n);
      auto [differs, _] = std::mismatch(mine.begin(), mine.end(), want.begin());
      if (differs != mine.end()) first_wrong = at + (differs - mine.begin());
      want = want.subspan(static_cast<std::size_t>(n));
      at += n;
    }
  });
  return first_wrong;
}

void LiveCheck::compare(const char* what) {
  std::vector<i64> wrong(pieces_.size());
  parallel_for(std::ssize(pieces_), static_cast<int>(workers_.size()), [&](int worker, i64 i) {
    if (options_.observer && options_.observer->stop())
      throw Error(Code::kInterrupted, "the comparison was stopped before it was done");
    std::size_t at = static_cast<std::size_t>(i);
    wrong[at] = first_wrong_byte(pieces_[at], *workers_[worker]);
    if (options_.observer) options_.observer->done(std::ssize(pieces_[at].bytes));
  });
  i32 last_reported = -1;
  for (std::size_t i = 0; i < pieces_.size(); i++) {
    const Piece& piece = pieces_[i];
    if (wrong[i] < 0 || piece.parameter == last_reported) continue;
    last_reported = piece.parameter;
    differences_.push_back(
        {as_stored_[last_reported].name, what, piece.items.begin + wrong[i] / dtype_bytes(piece.type, 1)});
  }
  pieces_.clear();
}

void LiveCheck::check_stored() {
  for (i32 i = 0; i < static_cast<i32>(as_stored_.size()); i++) {
    const ModelParameter& p = as_stored_[i];
    std::optional<Tensor> shard;
    if (p.buffer()) {
      DType type = model_.parameters()[i].dtype;
      add(i, {0, p.shape().items()}, type, type, model_.buffer_bytes(i));
    } else if (shard = model_.stored_shard(i); shard) {
      const LiveModel::Seat& seat = model_.seat(i);
      DType type = seat.group->stored_type();
      add(i, seat.group->stored_items_of(seat.member), type, type, shard->facts().bytes);
    }
    parameters_ += p.buffer() || shard;
  }
  compare("stored weights");
}

// The expected values are the source's, passed through the type of the stored weights.
void LiveCheck::add_live(i32 parameter) {
  const LiveGroup& group = *model_.seat(parameter).group;
  add(parameter, {0, as_stored_[parameter].shape().items()}, group.stored_type(), group.how().compute,
      model_.tensor(parameter).facts().bytes);
  parameters_++;
}

// The rows of a slice follow each other in it, and are compared with the source's rows one range at a time.
void LiveCheck::add_slice(i32 parameter) {
  const LiveSetup& setup = model_.setup();
  std::vector<RowRange> rows =
      cp_slice_of(as_stored_[parameter], model_.map().model(), setup.grid, model_.cell().cp);
  if (rows.empty()) return;
  const LiveGroup& group = *model_.seat(parameter).group;
  slices_.push_back(model_.cp_slice(parameter));
  std::span<const u8> rest = slices_.back().facts().bytes;
  i64 row_items = as_stored_[parameter].shape().row_items();
  for (const RowRange& r : rows) {
    auto bytes = static_cast<std::size_t>(dtype_bytes(group.how().compute, (r.end - r.begin) * row_items));
    add(parameter, {r.begin * row_items, r.end * row_items}, group.stored_type(), group.how().compute,
        rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  if (!rest.empty()) throw Error(Code::kInternal, "a slice has other rows than the rank uses");
  cp_slices_++;
}

void LiveCheck::check_live(i32 module) {
  std::vector<i32> parameters = model_.extra_parameters(module);
  for (const std::unique_ptr<LiveGroup>& group : model_.groups_of(module))
    for (i64 member : group->bucket().members) parameters.push_back(static_cast<i32>(member));
  for (i32 p : parameters) add_live(p);
  compare("live values");
  if (model_.setup().grid.cp == 1) return;
  for (i32 p : parameters) add_slice(p);
  compare("the context-parallel slice");
  slices_.clear();
}

}  // namespace mckpt::impl
