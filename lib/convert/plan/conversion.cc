// The proof of a whole conversion. The proof and its subject are in convert/jobs/proof.h.
#include "convert/plan/conversion.h"

#include <algorithm>

#include "convert/open/opened.h"
#include "convert/plan/target.h"
#include "core/base/text.h"
#include "hf/config/config_file.h"
#include "io/copy/job.h"
#include "io/copy/read_sums.h"
#include "io/output/output_files.h"
#include "io/store/names/hf_weights.h"
#include "io/store/shared_tensors.h"
#include "io/store/store.h"

namespace mckpt::impl {

Planned::Planned() = default;
Planned::Planned(Planned&&) noexcept = default;
Planned& Planned::operator=(Planned&&) noexcept = default;
Planned::~Planned() = default;

Conversion::Conversion() = default;
Conversion::Conversion(Conversion&&) noexcept = default;
// The jobs refer to what is opened and to the target.
Conversion::~Conversion() { job.reset(), proved_job.reset(); }

void set_files(Planned& planned, std::vector<OutputFile> files) {
  planned.files = std::move(files);
  planned.bytes = 0;
  for (const OutputFile& f : planned.files) planned.bytes += f.bytes;
}

void note_shared(Planned& planned, const Store& store, const std::vector<i64>& tensors) {
  std::vector<i64> shared = shared_tensors(store, tensors);
  planned.shared_tensors = std::ssize(shared);
  if (shared.empty()) return;
  std::vector<std::string_view> names;
  for (i64 t : shared) names.push_back(store.name(t));
  planned.details.note(cat(
      "note    these tensors share storage in the source (tied weights or views) and are written in full: ",
      listed(names)));
}

namespace {

// A config.json beside safetensors files names one of them, or none: transformers loads the file that it
// names.
void name_written_weights(Planned& planned) {
  const auto written = [&](std::string_view name) {
    return std::ranges::find(planned.files, name, &OutputFile::name) != planned.files.end();
  };
  const auto is_weights = [](const OutputFile& file) { return file.name.ends_with(".safetensors"); };
  if (std::ranges::none_of(planned.files, is_weights)) return;
  const std::string text = config_text(planned.beside.files), named = weights_named_in(text);
  if (named.empty() || written(named)) return;
  set_config_text(planned.beside.files, without_weights_entry(text));
  planned.details.note(cat("config  without ", kWeightsEntry, ", which names ", escaped(named),
                           ": the files of the result have other names"));
}

}  // namespace

void add_beside(Planned& planned, FsdpFolder::Beside beside) {
  planned.beside = std::move(beside);
  name_written_weights(planned);
  if (const std::vector<std::string>& folders = planned.beside.left_out(); !folders.empty())
    planned.details.warn(
        cat("folders beside the model's files are not copied into the result: ", listed(folders, 20)));
}

void prove(Conversion& conversion, int threads, bool by_tensor, std::function<bool()> stop) {
  conversion.proof.threads = threads;
  conversion.proof.stop = std::move(stop);
  const CopyJob& job = conversion.proved_job ? *conversion.proved_job : *conversion.job;
  TensorAccount* tensors = by_tensor ? &conversion.tensors.emplace() : nullptr;
  conversion.account = prove(job, conversion.proof, tensors);
  if (conversion.behind) {
    conversion.account.tensors_in = conversion.behind->tensors;
    conversion.account.dropped += conversion.behind->dropped;
  }
  conversion.proof.stop = {};  // what it refers to may end with this call
}

}  // namespace mckpt::impl
