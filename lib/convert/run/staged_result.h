// Where a result is made, and how it gets its name: a folder, which can be resumed, or a single file.
#pragma once

#include <optional>
#include <string>

#include "io/file/staged_file.h"
#include "io/file/staged_folder.h"

namespace mckpt::impl {

class OutputFiles;
struct Conversion;
struct OutputFile;
struct RunOptions;

StagedFolder::Options folder_staging(const Conversion& conversion, const RunOptions& options);
StagedFile::Options file_staging(const RunOptions& options);

class StagedResult {
 public:
  // Makes the hidden folder, or opens the one that an interrupted run left. Throws what StagedFolder and
  // StagedFile throw.
  StagedResult(const Conversion& conversion, const RunOptions& options);

  const std::string& folder() const { return folder_ ? folder_->folder() : file_->folder(); }
  // The files of the conversion, by their names in folder().
  std::vector<OutputFile> files() const;
  bool resumes() const { return folder_ && folder_->resumes(); }
  // The run that is resumed had published the result: only publish() is left to do.
  bool published() const { return folder_ && folder_->published(); }
  // Gives the result its name, and names it in the tracker. `out`: of a single file. Throws kWriteFailed.
  void publish(OutputFiles* out);

 private:
  const Conversion& conversion_;
  bool durable_;
  std::optional<StagedFolder> folder_;
  std::optional<StagedFile> file_;
};

}  // namespace mckpt::impl
