// Each rank compares its share of an exported folder with the source by carrying out the copy from the source
// with a comparison in place of the writing. Tasks are shared by number: of 10 tasks and 4 ranks, rank 1 has
// tasks 2 to 4.
#include "live/round_trip/exported_folder.h"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <set>

#include "convert/compare/differences/compare_sink.h"
#include "convert/compare/differences/tensors.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/readable_chunks.h"
#include "core/base/error.h"
#include "hf/model.h"
#include "io/copy/engine.h"
#include "io/copy/observed_sink.h"
#include "io/file/remove_tree.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {

namespace {

// A line for each of the differences: tensors that are missing, new, or of another type or shape. `may_lack`:
// by tensor of the source, whether an export leaves it out.
std::vector<std::string> described(std::span<const TensorDifference> differences, const Store& source,
                                   const std::vector<bool>& may_lack, const Store& there) {
  std::vector<std::string> lines;
  for (const TensorDifference& d : differences) {
    if (d.one < 0)
      lines.push_back(cat(escaped(there.name(d.other)), " was exported, but is not in the source"));
    else if (d.other >= 0)
      lines.push_back(cat(escaped(source.name(d.one)), " was exported as ", type_and_shape(there, d.other),
                          ", but in the source it is ", type_and_shape(source, d.one)));
    else if (!may_lack[d.one])
      lines.push_back(cat(escaped(source.name(d.one)), " was not exported"));
  }
  return lines;
}

// Removes a folder in which other ranks may still be writing. The folder is renamed first, so that they
// create nothing more in it; files that they have open disappear with their processes.
void remove_in_use(const std::string& path) {
  std::error_code ignored;
  std::string aside = cat(path, "_lost");
  std::filesystem::rename(path, aside, ignored);
  remove_tree(aside);
}

}  // namespace

// Collective: the name is known when all ranks have it from rank 0.
ScratchFolder::ScratchFolder(Comm& world) : world_(world), mine_(world.rank() == 0) {
  if (mine_) {
    path_ = (std::filesystem::temp_directory_path() / "mckpt_roundtrip_XXXXXX").string();
    if (!::mkdtemp(path_.data()))
      throw Error(Code::kWriteFailed, "cannot create a temporary folder")
          .file(path_)
          .help("name a folder for the exported model");
  }
  Gathered all = world.all_gather_v(std::as_bytes(std::span(path_)));
  path_.assign(reinterpret_cast<const char*>(all.of(0).data()), all.of(0).size());
  world.activity().when_lost([path = path_] { remove_in_use(path); });
}

// After an error the folder stays known to the watch, which removes it when the other ranks have ended: see
// Activity::when_lost().
ScratchFolder::~ScratchFolder() {
  if (std::uncaught_exceptions() == exceptions_) world_.activity().when_lost({});
  if (mine_) remove_tree(path_);
}

FolderComparison compare_share(const HfModel& source, const std::string& folder, const Comm& ranks,
                               int threads, Observer& observer) {
  FolderComparison found;
  std::unique_ptr<Store> there = open_store(folder, source.opening);
  std::vector<TensorDifference> unlike = tensor_differences(*source.store, *there);
  if (ranks.rank() == 0) found.differences = described(unlike, *source.store, source.map->dropped(), *there);
  // Items are compared only of tensors that have the same type and shape on both sides.
  std::set<i64> not_compared;
  for (const TensorDifference& d : unlike)
    if (d.other >= 0) not_compared.insert(d.other);
  NamedChunks chunks(*there, *source.store, not_compared);
  ChunkJob job = tensor_job(*source.store, chunks);
  CompareSink sink(*there, chunks, CompareSink::Places::kFirst);
  ObservedSink observed(sink, observer);
  found.bytes = run_copy(job, observed,
                         {.threads = threads,
                          .memory_bytes = i64{64} << 20,
                          .stop = [&] { return observer.stop(); },
                          .first_task = job.task_count() * ranks.rank() / ranks.size(),
                          .end_task = job.task_count() * (ranks.rank() + 1) / ranks.size()})
                    .bytes_written;
  for (const CompareSink::Difference& d : sink.differences())
    found.differences.push_back(cat("exported ", escaped(source.store->name(d.key)), " from item ", d.item,
                                    " of what ", escaped(file_label(*there, d.file)), " holds of it on"));
  return found;
}

}  // namespace mckpt::impl
