// Names, types and shapes decide the place of every tensor. A safetensors file has all other bytes in its
// header; a .pt file has the checksums of the tensors among them, so its frame is complete only after the
// tensors are copied.
#include "convert/plan/targets/file.h"

#include <algorithm>
#include <unordered_set>

#include "convert/open/damage.h"
#include "convert/open/open.h"
#include "convert/plan/target.h"
#include "convert/plan/targets/own.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "io/choice/tensor_choice.h"
#include "io/copy/tensor_copy.h"
#include "io/output/output_rules.h"
#include "io/safetensors/layout.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/store/tensor_spec.h"
#include "io/torch/layout.h"

namespace mckpt::impl {
namespace {

// Opens a source without problems: the result of a damaged source would look sound.
std::unique_ptr<Store> open_as(const FileOptions& options, std::string_view mode, FormatFamily family,
                               std::string_view what) {
  std::unique_ptr<Store> store = open_store(options.source, options.files);
  if (format_family(store->format()) != family)
    throw Error(Code::kUnknownFormat, cat(mode, " does not read this format"))
        .file(store->root())
        .expected(what)
        .found(format_text(store->format()))
        .help("`mckpt help convert` lists the modes");
  refuse_lone_shards(*store, "converted");
  require_sound(store->findings(), store->root());
  if (store->driver().flat)
    throw Error(Code::kUnknownAssets,
                cat(mode, " copies tensors as they are, and these were saved flat, without shapes"))
        .file(store->root())
        .help("`mckpt convert to-safetensors` takes the shapes from `assets`, the folder of the model");
  return store;
}

// A file of the source is refused as that, before its name is looked at.
void check_name(const FileOptions& options, bool torch) {
  if (names_other_format(options.target, torch)) OutputRules({options.source}).check_file(options.target);
  refuse_other_name(options.target, torch);
}

// The tensors that the globs leave, in natural order.
std::vector<i64> chosen_tensors(const Store& store, const FileOptions& options) {
  std::vector<i64> chosen = natural_order(store);
  auto matching = [&](const std::vector<std::string>& globs) {
    std::unordered_set<i64> tensors;
    for (const std::string& glob : globs)
      for (i64 t : TensorChoice{.pattern = glob}.choose(store)) tensors.insert(t);
    return tensors;
  };
  if (!options.include.empty())
    std::erase_if(chosen, [in = matching(options.include)](i64 t) { return !in.contains(t); });
  if (!options.exclude.empty())
    std::erase_if(chosen, [out = matching(options.exclude)](i64 t) { return out.contains(t); });
  if (chosen.empty() && store.tensor_count() > 0)
    throw Error(Code::kNoSuchTensor, "`include` and `exclude` leave no tensor").file(store.root());
  return chosen;
}

// A tensor that is not chosen is dropped; without globs no tensor may be dropped.
ProofInput proof_of(const Store& store, const std::vector<i64>& tensors, bool may_drop) {
  std::vector<bool> chosen(static_cast<std::size_t>(store.tensor_count()));
  for (i64 t : tensors) chosen[t] = true;
  ProofInput input{side_of(store), side_of(store)};
  // Elements smaller than a byte are copied as the bytes that they fill.
  input.source.items = [&store](i64 t) {
    return TensorReader::tensor_bytes(store, t) / std::max(1, dtype_info(store.dtype(t)).bits / 8);
  };
  input.target.items = [chosen, items = input.source.items](i64 t) { return chosen[t] ? items(t) : -1; };
  for (i64 t = 0; may_drop && t < store.tensor_count(); t++)
    if (!chosen[t]) input.dropped.push_back(t);
  return input;
}

// The common part of both conversions: chooses, and makes the job. The layout decides the offsets.
class FileTarget : public Target {
 public:
  FileTarget(const Opened& source, const FileOptions& options)
      : store_(source.store()), tensors_(chosen_tensors(store_, options)) {
    path = options.target, single_file = true;
    proof = proof_of(store_, tensors_, !options.include.empty() || !options.exclude.empty());
    note_shared(*this, store_, tensors_);
  }

 protected:
  const Store& store() const { return store_; }
  std::vector<TensorSpec> specs() const {
    std::vector<TensorSpec> out;
    for (i64 t : tensors_) out.push_back({store_.name(t), store_.dtype(t), store_.dims(t)});
    return out;
  }

  // `offset`: of tensor i in the file; `follows`: the bytes behind each tensor there.
  template <typename Offset>
  const TensorCopy* add_job(Offset&& offset, std::string_view follows, i64 file_bytes) {
    std::vector<TensorCopy::Place> places;
    for (i64 i = 0; i < std::ssize(tensors_); i++) places.push_back({tensors_[i], 0, offset(i)});
    std::ranges::sort(places, {}, &TensorCopy::Place::offset);
    auto made = std::make_unique<TensorCopy>(store_, std::move(places), follows);
    const TensorCopy* copy = made.get();
    job = std::move(made);
    set_files(*this, {{path, file_bytes}});
    return copy;
  }

 private:
  const Store& store_;
  std::vector<i64> tensors_;  // in the order in which the user sees them
};

// The result of `lay_out`. For tensors that the format cannot hold, the error says what is done about them
// here.
template <typename LayOut>
auto laid_out(LayOut&& lay_out) {
  try {
    return lay_out();
  } catch (Error& e) {
    if (e.code() == Code::kNotHeld) e.help("`exclude` leaves tensors out");
    throw;
  }
}

// Objects have no place in a safetensors file.
void check_objects(const Store& store, bool tensors_only, Notes& notes) {
  if (store.objects().empty()) return;
  std::vector<std::string_view> names;
  for (const Object& o : store.objects()) names.push_back(o.name);
  std::string text = cat(counted(std::ssize(names), "object"), " of the source: ", listed(names, 20));
  if (tensors_only) return notes.warn(cat("only tensors are in the result, not the ", text));
  throw Error(Code::kNotHeld, "a safetensors file can contain only tensors")
      .file(store.root())
      .found(text)
      .help("`tensors_only` leaves the objects out");
}

// The texts in the headers of safetensors files have no place in a .pt file.
void note_metadata(const Store& store, Notes& notes) {
  constexpr std::string_view kPrefix = "metadata.";
  std::vector<std::string_view> keys;
  for (const auto& [name, value] : store.facts())
    if (name.starts_with(kPrefix) && name != "metadata.format")
      keys.push_back(std::string_view(name).substr(kPrefix.size()));
  if (!keys.empty()) notes.warn(cat("this metadata of the source is not in the result: ", listed(keys, 20)));
}

// All other bytes are in the header.
class SafetensorsFile final : public FileTarget {
 public:
  SafetensorsFile(const Opened& source, const FileOptions& options)
      : FileTarget(source, options), layout_(laid_out([&] { return SafetensorsLayout(specs()); })) {
    format = "safetensors";
    add_job([&](i64 i) { return layout_.offset(i); }, "", layout_.files()[0].bytes);
  }
  void write_frame(const FramePlace& to) const override { impl::write_frame(layout_, to); }

 private:
  SafetensorsLayout layout_;
};

// The zip records around the tensors have their checksums, which are known when they are copied.
class TorchFile final : public FileTarget {
 public:
  TorchFile(const Opened& source, const FileOptions& options)
      : FileTarget(source, options),
        layout_(laid_out([&] { return TorchLayout(torch_archive_folder(options.target), specs()); })) {
    note_metadata(store(), notes);
    format = "torch.save";
    copy_ = add_job([&](i64 i) { return layout_.data_offset(i); }, TorchLayout::kRecordMark,
                    layout_.file_bytes());
  }
  void write_frame(const FramePlace& to) const override {
    for (const TorchLayout::Piece& p : layout_.frame(copy_->crc32s())) to.out.write(0, p.offset, p.bytes);
  }

 private:
  TorchLayout layout_;
  const TensorCopy* copy_ = nullptr;
};

// As the user named it.
Opened opened_file(std::unique_ptr<Store> store, const FileOptions& options) {
  std::vector<Finding> findings = store->findings();
  Opened out = open_plain(std::move(store), options.source, std::move(findings));
  out.folders = {options.source};
  return out;
}

}  // namespace

Conversion plan_pt_to_safetensors(const FileOptions& options, bool tensors_only) {
  std::unique_ptr<Store> source =
      open_as(options, "pt-to-safetensors", FormatFamily::kTorch, "a .pt file, or a folder of them");
  check_name(options, false);
  Opened opened = opened_file(std::move(source), options);
  check_objects(opened.store(), tensors_only, opened.notes);
  return plan(std::move(opened), [&](Opened& in) { return std::make_unique<SafetensorsFile>(in, options); });
}

Conversion plan_safetensors_to_pt(const FileOptions& options) {
  std::unique_ptr<Store> source = open_as(options, "safetensors-to-pt", FormatFamily::kSafetensors,
                                          "a safetensors file, or a folder of them");
  check_name(options, true);
  return plan(opened_file(std::move(source), options),
              [&](Opened& in) { return std::make_unique<TorchFile>(in, options); });
}

}  // namespace mckpt::impl
