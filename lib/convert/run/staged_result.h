// StagedResult: where a result is made, and how it gets its name. A result is a folder, which can be gone on
// with, or a single file, which cannot.
//
//   ckpt/.release.mckpt-tmp/__0_0.distcp ...   -- publish() -->   ckpt/release/__0_0.distcp ..., then the tracker
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/output/staged_file.h"
#include "io/output/staged_folder.h"

namespace mckpt::impl {

class OutputFiles;
struct Conversion;
struct OutputFile;
struct RunOptions;

StagedFolder::Options folder_staging(const Conversion& conversion, const RunOptions& options);
StagedFile::Options file_staging(const RunOptions& options);
// The hidden folder of a result, and the files of the conversion by their names there: where every rank
// writes.
std::string staging_path(const Conversion& conversion);
std::vector<OutputFile> staged_files(const Conversion& conversion);

// The staged result of rank 0; only rank 0 has one. The conversion outlives it. If the object is destroyed
// without publish(), a folder remains, with which the next run of the same conversion goes on.
class StagedResult {
 public:
  // Makes the hidden folder, or opens the one that an interrupted run left. Throws what StagedFolder and
  // StagedFile throw.
  StagedResult(const Conversion& conversion, const RunOptions& options);

  const std::string& folder() const { return folder_ ? folder_->folder() : file_->folder(); }
  bool resumes() const { return folder_ && folder_->resumes(); }
  bool began_anew() const { return folder_ && folder_->began_anew(); }
  // The run that is resumed had published the result: only publish() is left to do.
  bool published() const { return folder_ && folder_->published(); }
  // No later run goes on with what is made: after an error of the source. Returns 0 or an errno.
  int give_up() { return folder_ ? folder_->give_up() : 0; }
  // Gives the result its name, and writes the tracker. `out`: the files of a single-file result, else
  // ignored. Throws kWriteFailed.
  void publish(OutputFiles* out);

 private:
  const Conversion& conversion_;
  bool durable_;
  std::optional<StagedFolder> folder_;
  std::optional<StagedFile> file_;
};

}  // namespace mckpt::impl
