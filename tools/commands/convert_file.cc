// convert pt-to-safetensors and safetensors-to-pt: the tensors of a store into one file, bit for bit.
#include <sys/stat.h>

#include <algorithm>

#include "io/copy/tensor_copy.h"
#include "io/safetensors/layout.h"
#include "io/store/shared_tensors.h"
#include "io/torch/layout.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/convert_options.h"
#include "tools/render/findings.h"
#include "tools/run_conversion.h"

namespace mckpt {
namespace {

// What the two modes differ in, apart from the layout of what they write.
struct FileMode {
  std::string_view name, source_format, source, target;
  std::string_view examples[2];
};

constexpr FileMode kPtToSafetensors = {
    "pt-to-safetensors",
    "torch.save",
    "a .pt file, or a folder of them",
    "a safetensors file",
    {"model.pt model.safetensors", "checkpoint.pt model.safetensors --include 'model.*' --tensors-only"}};
constexpr FileMode kSafetensorsToPt = {"safetensors-to-pt",
                                       "safetensors",
                                       "a safetensors file, or a folder of them",
                                       "a .pt file",
                                       {"model.safetensors model.pt", "hf_folder model.pt --dry-run"}};

struct FileJob {
  FileJob(CommandLine& line, const FileMode& file_mode) : flags(line.flags()), mode(file_mode) {
    parse(line);
  }

  const GlobalFlags& flags;
  const FileMode& mode;
  ConvertOptions options;
  bool tensors_only = false;

  Exit run();

 private:
  void parse(CommandLine& line);
  bool to_torch() const { return &mode == &kSafetensorsToPt; }
  ConversionPlan plan() const;
  std::unique_ptr<Store> open(Notes& notes) const;
  void check_objects(const Store& store, Notes& notes) const;
  void note_metadata(const Store& store, Notes& notes) const;
  void lay_out(ConversionPlan& c, const Store& store, const std::vector<i64>& tensors) const;
  ProofInput proof(const Store& store, const std::vector<i64>& tensors) const;
};

void FileJob::parse(CommandLine& line) {
  options.declare(line, std::string(mode.source), cat("where the result goes: ", mode.target));
  options.declare_choice(line);
  if (&mode == &kPtToSafetensors)
    line.flag("--tensors-only", tensors_only,
              "write tensors only; skip args, iteration number and other objects");
  line.description(
      "Copies every tensor bit for bit under its own name. A tensor or object that the target format cannot "
      "hold is refused before anything is written. Prints the path of the result.");
  for (std::string_view example : mode.examples) line.example(cat("mckpt convert ", mode.name, " ", example));
  line.parse();
  struct stat st;
  if (::stat(options.target.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
    throw Error(Code::kUsage, "DST is a folder, but one file is written")
        .found(escaped(options.target))
        .help("name a file in it");
  options.check_report();
}

// Opens the source and refuses what is wrong with it: the result would look sound.
std::unique_ptr<Store> FileJob::open(Notes& notes) const {
  std::unique_ptr<Store> store = open_store(options.source);
  if (!store->format().starts_with(mode.source_format))
    throw Error(Code::kUnknownFormat, cat(mode.name, " does not read this format"))
        .file(store->root())
        .expected(mode.source)
        .found(store->format())
        .help("mckpt convert --help   lists the modes");
  require_sound(flags, store->findings(), store->root());
  check_objects(*store, notes);
  note_metadata(*store, notes);
  return store;
}

void FileJob::check_objects(const Store& store, Notes& notes) const {
  if (to_torch() || store.objects().empty()) return;
  std::vector<std::string_view> names;
  for (const Object& o : store.objects()) names.push_back(o.name);
  std::string text = cat(counted(std::ssize(names), "object"), " of the source: ", listed(names, 20));
  if (tensors_only) return notes.warn(cat("not tensors, so not in the result: ", text));
  throw Error(Code::kNotHeld, "a safetensors file holds tensors only")
      .file(store.root())
      .found(text)
      .help("--tensors-only leaves them out");
}

// The texts in the headers of safetensors files have no place in a .pt file.
void FileJob::note_metadata(const Store& store, Notes& notes) const {
  constexpr std::string_view kPrefix = "metadata.";
  std::vector<std::string_view> keys;
  for (const auto& [name, value] : store.facts())
    if (name.starts_with(kPrefix) && name != "metadata.format")
      keys.push_back(std::string_view(name).substr(kPrefix.size()));
  if (to_torch() && !keys.empty())
    notes.warn(cat("metadata of the source that is not in the result: ", listed(keys, 20)));
}

// What is not chosen is dropped; without --include and --exclude nothing may be.
ProofInput FileJob::proof(const Store& store, const std::vector<i64>& tensors) const {
  std::vector<bool> chosen(static_cast<std::size_t>(store.tensor_count()));
  for (i64 t : tensors) chosen[static_cast<std::size_t>(t)] = true;
  ProofInput input{side_of(store), side_of(store)};
  // Elements smaller than a byte are copied as the bytes that they fill.
  input.source.items = [&store](i64 t) {
    return TensorReader::tensor_bytes(store, t) / std::max(1, dtype_info(store.dtype(t)).bits / 8);
  };
  input.target.items = [chosen, items = input.source.items](i64 t) {
    return chosen[static_cast<std::size_t>(t)] ? items(t) : -1;
  };
  bool may_drop = !options.include.empty() || !options.exclude.empty();
  for (i64 t = 0; may_drop && t < store.tensor_count(); t++)
    if (!chosen[static_cast<std::size_t>(t)]) input.dropped.push_back(t);
  return input;
}

// Names, types and shapes decide the place of every tensor.
void FileJob::lay_out(ConversionPlan& c, const Store& store, const std::vector<i64>& tensors) const {
  std::vector<TensorSpec> specs;
  for (i64 t : tensors) specs.push_back({store.name(t), store.dtype(t), store.dims(t)});
  // Half of a thread's memory; the other half is the engine's.
  i64 strided =
      std::clamp<i64>(options.memory_bytes / options.threads / 2, 1 << 20, TensorReader::kStridedBytes);
  auto copy = [&](auto&& offset, std::string_view behind) {
    std::vector<TensorCopy::Place> places;
    for (i64 i = 0; i < std::ssize(tensors); i++)
      places.push_back({tensors[static_cast<std::size_t>(i)], 0, offset(i)});
    std::ranges::sort(places, {}, &TensorCopy::Place::offset);
    return std::make_unique<TensorCopy>(store, std::move(places), behind, strided);
  };
  if (to_torch()) {
    auto& layout = c.parts.make<TorchLayout>(torch_archive_folder(options.target), specs);
    auto job = copy([&](i64 i) { return layout.data_offset(i); }, TorchLayout::kRecordMark);
    c.layout = TorchResult{&layout, job.get()};
    c.job = std::move(job);
    c.bytes = layout.file_bytes();
  } else {
    auto& layout = c.parts.make<SafetensorsLayout>(specs);
    c.layout = &layout;
    c.job = copy([&](i64 i) { return layout.offset(i); }, "");
    c.bytes = layout.files()[0].bytes;
  }
  c.files = {{options.target, c.bytes}};
}

ConversionPlan FileJob::plan() const {
  ConversionPlan c;
  const Store& store = c.parts.keep(open(c.notes));
  std::vector<i64> tensors = options.choose(store);
  lay_out(c, store, tensors);
  c.sources = {options.source};
  c.store = &store;
  c.sums = std::make_unique<ReadSums>();
  c.path = options.target;
  c.single_file = true;
  c.proof = proof(store, tensors);
  std::vector<i64> shared = shared_tensors(store, tensors);
  std::vector<std::string_view> names;
  for (i64 t : shared) names.push_back(store.name(t));
  c.shared_tensors = std::ssize(shared);
  if (!shared.empty())
    c.details.note(
        cat("note    written in full, though they share storage in the source (tied weights, or views): ",
            listed(names)));
  return c;
}

Exit FileJob::run() {
  return run_conversion([this] { return plan(); }, "convert", options, flags, false);
}

}  // namespace

Exit convert_pt_to_safetensors(CommandLine& line) { return FileJob(line, kPtToSafetensors).run(); }
Exit convert_safetensors_to_pt(CommandLine& line) { return FileJob(line, kSafetensorsToPt).run(); }

}  // namespace mckpt
