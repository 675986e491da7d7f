// A copy into a folder that appears when it is whole, carried out alone or by all ranks of the job together:
// rank 0 makes the folder and publishes it, every rank does its share of the tasks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "convert/output/fsdp_folder.h"
#include "io/copy/engine.h"
#include "io/file/output_files.h"
#include "io/file/sha256.h"
#include "tools/options/convert_options.h"
#include "tools/render/convert_report.h"

namespace mckpt {

// What identifies the work, so that --resume goes on with the same work only: of what, how, by which version.
class PlanText {
 public:
  explicit PlanText(std::string_view mode) : mode_(mode) { add(MCKPT_VERSION); }
  void add(std::string_view part);
  std::string text() { return mode_ + ' ' + sha_.hex_digest() + '\n'; }

 private:
  std::string mode_;
  Sha256 sha_;
};

struct StagedCopy {
  std::string path;                  // of the folder
  std::string plan;                  // PlanText
  std::vector<std::string> sources;  // the folders that are read
  std::vector<OutputFile> files;
  const CopyJob& job;
  // Writes what is no task's, in rank 0, when all tasks are done. `folder` is where the files are.
  std::function<void(OutputFiles& out, const std::string& folder)> finish;
  const FsdpFolder::Beside& beside;  // that it writes beside `files`
  // What is told of everything that is read, and judges it against the source's own sums before anything is
  // published; null: the source has none.
  ReadSums* sums = nullptr;
  const Store* source;
  // The result is an iteration of a run: with the last step the run's tracker names it. Null: it is not.
  const FsdpFolder* run = nullptr;
};

// Rank 0 goes ahead, up to carry_out(): what it refuses it refuses for all, so that it is said once. The
// other ranks wait here. Returns whether this rank has anything to do: a dry run is rank 0's alone.
[[nodiscard]] bool follow_rank_0(const ConvertOptions& options);

// Refuses what can be known not to work before anything is written; copies, unless it is a dry run; answers
// for `command`, with the counts of all ranks. `published`: what rank 0 does between the two, and cannot
// fail.
Exit carry_out(const StagedCopy& copy, ConvertReport& report, std::string_view command,
               const ConvertOptions& options, const GlobalFlags& flags,
               const std::function<void()>& published = {});

}  // namespace mckpt
