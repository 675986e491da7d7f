// A Checkpoint is a store of the engine, with a table of its names.
#include "mckpt/checkpoint.h"

#include <algorithm>
#include <mutex>

#include "api/boundary.h"
#include "api/public_notes.h"
#include "api/stable_paths.h"
#include "convert/asked/results.h"
#include "convert/asked/words.h"
#include "convert/dialects/fsdp/packed_by.h"
#include "convert/open/about_json.h"
#include "convert/open/open.h"
#include "convert/open/shard_facts.h"
#include "core/base/name_hash.h"
#include "core/items/dtype.h"
#include "io/choice/slice.h"
#include "io/choice/tensor_choice.h"
#include "io/file/parallel.h"
#include "io/json/json_writer.h"
#include "io/pickle/literal.h"
#include "io/pickle/render.h"
#include "io/pickle/value.h"
#include "io/store/lone_shard.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/digest.h"
#include "io/values/slice_reader.h"
#include "io/values/tensor_reader.h"
#include "io/values/tensor_stats.h"

namespace mckpt {

using impl::i64;

struct Checkpoint::State {
  std::unique_ptr<impl::Store> own;     // of open()
  std::unique_ptr<impl::Opened> model;  // of open_as_fsdp()
  const impl::Store& store;
  const impl::Store& on_disk;                      // what `store` reads through: the same, but for views
  impl::NameMap<std::string_view, i64> numbers{};  // of the tensors, by name
  // Readers of tensors, kept from one read to the next: opening a file takes longer than reading a small
  // tensor.
  impl::StoreFiles files{store, impl::StoreFiles::For::kLong};
  std::mutex mutex{};                                         // of `readers`
  std::vector<std::unique_ptr<impl::SliceReader>> readers{};  // that no thread uses
  impl::StablePaths paths{};                                  // of the files
  std::string path{};                                         // of the store, as the caller sees it

  void index() {
    for (i64 t = 0; t < store.tensor_count(); t++) numbers.emplace(store.name(t), t);
  }
  void read(i64 tensor, std::span<const impl::SliceRange> ranges, std::span<std::byte> to) {
    std::unique_ptr<impl::SliceReader> reader;
    {
      std::lock_guard lock(mutex);
      if (!readers.empty()) reader = std::move(readers.back()), readers.pop_back();
    }
    if (!reader) reader = std::make_unique<impl::SliceReader>(store, files);
    reader->read(tensor, ranges, {reinterpret_cast<impl::u8*>(to.data()), to.size()});
    reader->forget();
    std::lock_guard lock(mutex);
    readers.push_back(std::move(reader));  // after an error it is given up
  }
  // Throws kNoSuchTensor with the nearest name.
  i64 number(std::string_view name) const {
    auto found = numbers.find(name);
    return found != numbers.end() ? found->second : impl::tensor_named(store, std::string(name));
  }
};

// Makes the objects, whose constructor is private.
struct CheckpointAccess {
  static Checkpoint make(std::unique_ptr<Checkpoint::State> state, impl::StablePaths paths) {
    state->path = paths.as_given(state->store.root());
    state->paths = std::move(paths);
    state->index();
    return Checkpoint(std::move(state));
  }
  using State = Checkpoint::State;
};

namespace {

struct Part {
  i64 tensor;
  std::vector<impl::SliceRange> ranges;
};

Part part_of(const impl::Store& store, i64 tensor, std::string_view slice) {
  // As in Python the brackets belong to the expression and not to the slice.
  if (slice.size() >= 2 && slice.front() == '[' && slice.back() == ']')
    slice = slice.substr(1, slice.size() - 2);
  return {tensor, impl::parse_slice(slice, store.dims(tensor))};
}

Tensor described(const impl::Store& store, const Part& part) {
  Tensor t{.name = std::string(store.name(part.tensor)),
           .dtype = std::string(impl::dtype_name(store.dtype(part.tensor)))};
  for (const impl::SliceRange& r : part.ranges)
    if (!r.single) t.shape.push_back(r.end - r.begin);
  t.bytes = impl::SliceReader::bytes(store, part.tensor, part.ranges);
  return t;
}

std::string path_in(const impl::Store& store, impl::i32 file) {
  return file < 0 ? "" : store.files()[file].path;
}

// "" for an object that cannot be read: verify() says why.
std::string summary_of(const impl::Store& store, i64 object) {
  try {
    std::shared_ptr<const impl::PickleValue> value = store.object(object);
    return value ? impl::pickle_summary(*value) : "";
  } catch (const impl::Error&) {
    return "";
  }
}

}  // namespace

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const std::string& Checkpoint::path() const { return state_->path; }
std::string_view Checkpoint::format() const { return impl::format_text(state_->store.format()); }
std::int64_t Checkpoint::ranks() const { return state_->store.ranks(); }
std::int64_t Checkpoint::tensor_count() const { return state_->store.tensor_count(); }

std::vector<std::pair<std::string, std::string>> Checkpoint::facts() const { return state_->store.facts(); }

std::vector<Finding> Checkpoint::findings() const {
  std::vector<Finding> out;
  if (state_->model)
    for (const impl::Oddities& odd : state_->model->damage)
      for (const impl::Finding& f : odd.findings) out.push_back(impl::to_public(f));
  else
    for (const impl::Finding& f : state_->store.findings()) out.push_back(impl::to_public(f));
  return out;
}

std::string Checkpoint::writer_json() const {
  return state_->paths.guarded([&] {
    const impl::Store& store = state_->on_disk;
    const std::optional<impl::ShardFacts> shard = impl::shard_facts(store);
    const std::optional<impl::PackedBy> packing = impl::packed_by(store);
    std::string out;
    impl::JsonWriter json(out);
    impl::write_shard(json.begin_object().key("shard"), store, shard ? &*shard : nullptr);
    impl::write_packing(json.key("packing"), store, packing ? &*packing : nullptr);
    json.end_object();
    return out;
  });
}

std::vector<Object> Checkpoint::objects() const {
  std::vector<Object> out;
  const impl::Store& store = state_->store;
  for (i64 i = 0; i < std::ssize(store.objects()); i++) {
    const impl::Object& o = store.objects()[i];
    out.push_back({o.name, path_in(store, o.file), o.summary.empty() ? summary_of(store, i) : o.summary});
  }
  return out;
}

std::optional<std::string> Checkpoint::object_literal(std::string_view name) const {
  return state_->paths.guarded([&]() -> std::optional<std::string> {
    const impl::Store& store = state_->store;
    auto at = std::ranges::find(store.objects(), name, &impl::Object::name);
    if (at == store.objects().end())
      throw impl::Error(impl::Code::kNoSuchTensor,
                        impl::cat("there is no object of the name '", impl::escaped(name), "'"))
          .file(store.root())
          .found(impl::counted(std::ssize(store.objects()), "object"));
    std::shared_ptr<const impl::PickleValue> value = store.object(at - store.objects().begin());
    return value ? impl::pickle_literal(*value) : std::nullopt;
  });
}

std::vector<std::string> Checkpoint::names(std::string_view glob) const {
  return state_->paths.guarded([&] {
    std::vector<std::string> out;
    for (i64 t : impl::TensorChoice{std::string(glob)}.choose(state_->store))
      out.emplace_back(state_->store.name(t));
    return out;
  });
}

std::vector<std::string> Checkpoint::names_in_file_order() const {
  return state_->paths.guarded([&] {
    std::vector<std::string> out;
    for (i64 t : impl::file_order(state_->store)) out.emplace_back(state_->store.name(t));
    return out;
  });
}

bool Checkpoint::has(std::string_view name) const { return state_->numbers.contains(name); }

Tensor Checkpoint::tensor(std::string_view name) const { return sliced(name, ""); }

std::vector<TensorChunk> Checkpoint::chunks(std::string_view name) const {
  return state_->paths.guarded([&] {
    const impl::Store& store = state_->store;
    i64 tensor = state_->number(name);
    std::vector<TensorChunk> out;
    for (i64 c = 0; c < store.chunk_count(tensor); c++) {
      impl::Chunk chunk = store.chunk(tensor, c);
      out.push_back({.offsets = {chunk.offsets.begin(), chunk.offsets.end()},
                     .sizes = {chunk.sizes.begin(), chunk.sizes.end()},
                     .file = path_in(store, chunk.file),
                     .offset = chunk.record_offset,
                     .bytes = chunk.record_bytes,
                     .rank = chunk.rank,
                     .replica = chunk.replica});
    }
    return out;
  });
}

Tensor Checkpoint::sliced(std::string_view name, std::string_view slice) const {
  return state_->paths.guarded(
      [&] { return described(state_->store, part_of(state_->store, state_->number(name), slice)); });
}

std::vector<std::byte> Checkpoint::read(std::string_view name, std::string_view slice) const {
  return state_->paths.guarded([&] {
    Part part = part_of(state_->store, state_->number(name), slice);
    std::vector<std::byte> bytes(static_cast<std::size_t>(described(state_->store, part).bytes));
    state_->read(part.tensor, part.ranges, bytes);
    return bytes;
  });
}

void Checkpoint::read_into(std::string_view name, std::string_view slice, std::span<std::byte> to) const {
  state_->paths.guarded([&] {
    Part part = part_of(state_->store, state_->number(name), slice);
    i64 bytes = described(state_->store, part).bytes;
    if (bytes != std::ssize(to))
      throw impl::Error(impl::Code::kUsage, "the size of the memory is not that of the tensor")
          .tensor(name)
          .expected(impl::cat(bytes, " bytes"))
          .found(impl::cat(to.size(), " bytes"));
    state_->read(part.tensor, part.ranges, to);
  });
}

std::optional<TensorStretch> Checkpoint::stretch(std::string_view name) const {
  return state_->paths.guarded([&]() -> std::optional<TensorStretch> {
    const impl::Store& store = state_->store;
    i64 tensor = state_->number(name);
    impl::StoreFiles files(store);
    std::optional<impl::TensorReader::Stretch> found = impl::TensorReader(store, files).stretch(tensor);
    if (!found) return {};
    return TensorStretch{impl::file_path(store, found->file), found->offset};
  });
}

std::string Checkpoint::digest(std::string_view name) const {
  return state_->paths.guarded([&] {
    i64 tensor = state_->number(name);
    std::string digest = impl::tensor_digests(state_->store, {&tensor, 1}, 1).front();
    check_unchanged(state_->store.opening());
    return digest;
  });
}

Statistics Checkpoint::statistics(std::string_view name, int threads) const {
  return state_->paths.guarded([&] {
    impl::check_threads(threads);
    i64 tensor = state_->number(name);
    impl::TensorStats s = impl::tensor_stats(state_->store, {&tensor, 1}, 0, threads, [](i64) {}).front();
    check_unchanged(state_->store.opening());
    return impl::statistics_of(s);
  });
}

Statistics Checkpoint::slice_statistics(std::string_view name, std::string_view slice) const {
  return state_->paths.guarded([&] {
    std::vector<std::byte> bytes = read(name, slice);
    impl::TensorStats s = impl::stats_of(state_->store.dtype(state_->number(name)),
                                         {reinterpret_cast<const impl::u8*>(bytes.data()), bytes.size()});
    check_unchanged(state_->store.opening());
    return impl::statistics_of(s);
  });
}

namespace {

// Calls open(path, options) with paths that stay the same.
template <typename Options, typename Fn>
Checkpoint opened(std::string path, Options options, Fn&& open) {
  impl::StablePaths paths;
  return impl::guarded([&] {
    paths.keep(path, options);
    return paths.guarded([&] { return CheckpointAccess::make(open(path, options), paths); });
  });
}

std::unique_ptr<impl::Store> store_at(const std::string& path, const OpenOptions& options) {
  return impl::open_store(path, impl::opening_of(options, {{path}}));
}

}  // namespace

Checkpoint open(const std::string& path, const OpenOptions& options) {
  return opened(path, options, [](const std::string& at, const OpenOptions& how) {
    using State = CheckpointAccess::State;
    std::unique_ptr<impl::Store> store = store_at(at, how);
    const impl::Store& opened = *store;
    return std::unique_ptr<State>(new State{std::move(store), nullptr, opened, opened});
  });
}

Checkpoint open_local(const std::string& path, const OpenOptions& options) {
  return opened(path, options, [](const std::string& at, const OpenOptions& how) {
    using State = CheckpointAccess::State;
    std::shared_ptr<impl::Store> store = store_at(at, how);
    std::unique_ptr<impl::Store> local = impl::local_view(store);
    const impl::Store& view = *local;
    return std::unique_ptr<State>(new State{std::move(local), nullptr, view, *store});
  });
}

Checkpoint open_as_fsdp(const std::string& path, const SourceOptions& options) {
  return opened(path, options, [](const std::string& at, const SourceOptions& given) {
    using State = CheckpointAccess::State;
    impl::OpenAs how{.source = at, .how = impl::checkpoint_options(given, {{at}})};
    auto model =
        std::make_unique<impl::Opened>(impl::open_sharded(impl::open_store(at, how.how.model.files), how));
    const impl::Store& view = model->store();
    const impl::Store& disk = model->on_disk();
    return std::unique_ptr<State>(new State{nullptr, std::move(model), view, disk});
  });
}

}  // namespace mckpt
