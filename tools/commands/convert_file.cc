// convert pt-to-safetensors and safetensors-to-pt: the tensors of a store into one file, bit for bit.
#include <sys/stat.h>

#include <algorithm>

#include "io/copy/tensor_copy.h"
#include "io/file/output_files.h"
#include "io/file/source_stamps.h"
#include "io/safetensors/layout.h"
#include "io/store/shared_tensors.h"
#include "io/torch/layout.h"
#include "io/verify/checksums.h"
#include "io/verify/manifest_check.h"
#include "tools/commands/convert_modes.h"
#include "tools/interrupt.h"
#include "tools/options/convert_options.h"
#include "tools/proved_plan.h"
#include "tools/render/convert_report.h"
#include "tools/render/findings.h"
#include "tools/render/progress.h"

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
  std::unique_ptr<Store> store;
  std::vector<i64> tensors;  // of the store, in the order in which they are written
  std::optional<TensorCopy> copy;
  ConvertReport report;

  void open();
  std::vector<TensorSpec> specs() const;
  // `offset`: of tensor i in the file; `behind`: what follows each of them there.
  void plan_copy(const std::function<i64(i64)>& offset, std::string_view behind);
  void plan(i64 output_bytes);
  std::vector<std::string> sources() const;
  void check_source(const StoreFiles& files) const;
  Exit finish(bool done);

 private:
  void parse(CommandLine& line);
  ProofInput proof() const;
  void check_objects() const;
  void warn_of_metadata() const;
  void note_shared(std::span<const i64> shared) const;
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
void FileJob::open() {
  store = open_store(options.source);
  if (!store->format().starts_with(mode.source_format))
    throw Error(Code::kUnknownFormat, cat(mode.name, " does not read this format"))
        .file(store->root())
        .expected(mode.source)
        .found(store->format())
        .help("mckpt convert --help   lists the modes");
  require_sound(flags, store->findings(), store->root());
  require_listed_files(store->root());
  check_objects();
  warn_of_metadata();
  tensors = options.choose(*store);
}

void FileJob::check_objects() const {
  if (&mode != &kPtToSafetensors || store->objects().empty()) return;
  std::vector<std::string_view> names;
  for (const Object& o : store->objects()) names.push_back(o.name);
  std::string text =
      cat(counted(static_cast<i64>(names.size()), "object"), " of the source: ", listed(names, 20));
  if (tensors_only) return warn(flags, cat("not tensors, so not in the result: ", text));
  throw Error(Code::kNotHeld, "a safetensors file holds tensors only")
      .file(store->root())
      .found(text)
      .help("--tensors-only leaves them out");
}

// The texts in the headers of safetensors files have no place in a .pt file.
void FileJob::warn_of_metadata() const {
  constexpr std::string_view kPrefix = "metadata.";
  std::vector<std::string_view> keys;
  for (const auto& [name, value] : store->facts())
    if (name.starts_with(kPrefix) && name != "metadata.format")
      keys.push_back(std::string_view(name).substr(kPrefix.size()));
  if (&mode == &kSafetensorsToPt && !keys.empty())
    warn(flags, cat("metadata of the source that is not in the result: ", listed(keys, 20)));
}

std::vector<TensorSpec> FileJob::specs() const {
  std::vector<TensorSpec> out;
  for (i64 t : tensors) out.push_back({store->name(t), store->dtype(t), store->dims(t)});
  return out;
}

// What the user named, and what it led to: an index names its files.
std::vector<std::string> FileJob::sources() const {
  std::vector<std::string> paths = {options.source};
  for (i32 f = 0; f < std::ssize(store->files()); f++) paths.push_back(file_path(*store, f));
  return paths;
}

// What is not chosen is dropped; without --include and --exclude nothing may be.
ProofInput FileJob::proof() const {
  std::vector<bool> chosen(static_cast<std::size_t>(store->tensor_count()));
  for (i64 t : tensors) chosen[static_cast<std::size_t>(t)] = true;
  ProofInput input{side_of(*store), side_of(*store)};
  // Elements smaller than a byte are copied as the bytes that they fill.
  input.source.items = [this](i64 t) {
    return TensorReader::tensor_bytes(*store, t) / std::max(1, dtype_info(store->dtype(t)).bits / 8);
  };
  input.target.items = [chosen, items = input.source.items](i64 t) {
    return chosen[static_cast<std::size_t>(t)] ? items(t) : -1;
  };
  bool may_drop = !options.include.empty() || !options.exclude.empty();
  for (i64 t = 0; may_drop && t < store->tensor_count(); t++)
    if (!chosen[static_cast<std::size_t>(t)]) input.dropped.push_back(t);
  return input;
}

void FileJob::plan_copy(const std::function<i64(i64)>& offset, std::string_view behind) {
  std::vector<TensorCopy::Place> places;
  for (std::size_t i = 0; i < tensors.size(); i++)
    places.push_back({tensors[i], 0, offset(static_cast<i64>(i))});
  std::ranges::sort(places, {}, &TensorCopy::Place::offset);
  // Half of a thread's memory; the other half is the engine's.
  i64 strided =
      std::clamp<i64>(options.memory_bytes / options.threads / 2, 1 << 20, TensorReader::kStridedBytes);
  copy.emplace(*store, std::move(places), behind, strided);
  prove_plan(*copy, proof(), options, report);
}

// Says what will be done, and refuses what can be known not to work.
void FileJob::plan(i64 output_bytes) {
  std::vector<i64> shared = shared_tensors(*store, tensors);
  report.tied = static_cast<i64>(shared.size());
  report.bytes = output_bytes;
  report.output = options.target;
  note_plan(flags, report);
  note_shared(shared);
  OutputRules rules(sources());
  rules.check_file(options.target);
  options.check_report(rules, {options.target});
  StagedFile::check(options.target, options.staging(), output_bytes);
}

void FileJob::note_shared(std::span<const i64> shared) const {
  if (shared.empty()) return;
  std::vector<std::string_view> names;
  for (i64 t : shared) names.push_back(store->name(t));
  note(flags,
       cat("note    written in full, though they share storage in the source (tied weights, or views): ",
           listed(names)));
}

// The sums of the source are checked before its bytes are believed.
void FileJob::check_source(const StoreFiles& files) const {
  i64 bytes = 0;
  store->each_checksum([&](const Checksum& c) { bytes += c.bytes; });
  if (bytes == 0) return;
  Progress progress(flags, "check", bytes);
  ChecksumResult result = check_checksums(*store, files, options.threads, [&](i64 read) {
    progress.add(read);
    check_stop();
  });
  check_stop();
  require_sound(result.findings, store->root());
}

Exit FileJob::finish(bool done) {
  if (!done)
    note(flags, cat("would write ", human_bytes(report.bytes), " to ", escaped(report.output, 4096)));
  write_report(flags, "convert", report, done, options.report);
  return Exit::kOk;
}

// Writes the file: the tensors, and what frame(sums) gives once their sums are known.
template <typename Frame>
void write_output(FileJob& job, Frame&& frame) {
  stop_flag();  // from here on, what was begun is given up in order
  job.check_source(job.copy->files());
  StagedFile staged(job.options.target, job.options.staging());
  OutputFiles out(staged.folder(), {{staged.name(), job.report.bytes}});
  {
    Progress progress(job.flags, "write", job.report.bytes);
    job.report.bytes_read = run_copy(*job.copy, out, job.options.copying(progress)).bytes_read;
  }
  frame(out, job.copy->crc32s());
  check_stop();
  check_sources_unchanged();
  staged.publish(out);
}

std::span<const u8> as_bytes(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

}  // namespace

Exit convert_pt_to_safetensors(CommandLine& line) {
  FileJob job(line, kPtToSafetensors);
  job.open();
  SafetensorsLayout layout(job.specs());
  job.plan_copy([&](i64 i) { return layout.offset(i); }, "");
  job.plan(layout.files()[0].bytes);
  if (job.options.dry_run) return job.finish(false);
  write_output(job, [&](OutputFiles& out, std::span<const u32>) {
    out.write(0, 0, as_bytes(layout.files()[0].header));
  });
  return job.finish(true);
}

Exit convert_safetensors_to_pt(CommandLine& line) {
  FileJob job(line, kSafetensorsToPt);
  job.open();
  TorchLayout layout(torch_archive_folder(job.options.target), job.specs());
  job.plan_copy([&](i64 i) { return layout.data_offset(i); }, TorchLayout::kRecordMark);
  job.plan(layout.file_bytes());
  if (job.options.dry_run) return job.finish(false);
  write_output(job, [&](OutputFiles& out, std::span<const u32> sums) {
    for (const TorchLayout::Piece& p : layout.frame(sums)) out.write(0, p.offset, p.bytes);
  });
  return job.finish(true);
}

}  // namespace mckpt
