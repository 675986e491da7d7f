// A copy into a folder that appears when it is whole, carried out alone or by all ranks of the job together:
// rank 0 makes the folder and publishes it, every rank does its share of the tasks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/copy_engine.h"
#include "io/output_files.h"
#include "tools/convert_options.h"

namespace mckpt {

struct StagedCopy {
  std::string path;                  // of the folder
  std::string plan;                  // what identifies the work: of what, how, by which version
  std::vector<std::string> sources;  // the folders that are read
  std::vector<OutputFile> files;
  const CopyJob& job;
  // Writes what is no task's, in rank 0, when all tasks are done. `folder` is where the files are.
  std::function<void(OutputFiles& out, const std::string& folder)> finish;
  // What is told of everything that is read, and judges it against the source's own sums before anything is
  // published; null: the source has none.
  ReadSums* sums = nullptr;
  const Store* source = nullptr;
};

// Refuses what can be known not to work before anything is written.
void check_staged_copy(const StagedCopy& copy, const ConvertOptions& options);

// The counts are those of all ranks.
CopyCounts run_staged_copy(const StagedCopy& copy, const ConvertOptions& options, const GlobalFlags& flags);

// Rank 0 goes ahead, up to run_staged_copy(): what it refuses it refuses for all, so that it is said once.
// The other ranks wait here. Returns whether this rank has anything to do: a dry run is rank 0's alone.
bool follow_rank_0(const ConvertOptions& options);

}  // namespace mckpt
