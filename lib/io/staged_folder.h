// A folder that appears under its name only when it is whole. It is made in a hidden folder beside its place
// that carries the identity of the plan it is made by: a later run with the same plan can go on with what an
// interrupted one left. What was there before stays until then.
//
//   DIR/.NAME.mckpt-tmp/   -- write, fsync, rename, fsync of DIR -->   DIR/NAME/
#pragma once

#include <string>
#include <string_view>

#include "core/int.h"

namespace mckpt {

class OutputFiles;

class StagedFolder {
 public:
  struct Options {
    bool durable = true;   // false: no fsync; for scratch
    bool replace = false;  // a folder that is there may be replaced
    bool resume = false;   // go on with what was begun; not together with `replace`
    const char* instead = "replace it with --overwrite";  // of choosing another name for what is there
  };

  // What can be known before anything is written. Throws kOutputExists, kNoRoom when the file system has
  // fewer bytes or files free.
  static void check(const std::string& path, Options options, i64 bytes, i64 files);

  // `plan` identifies what is made: of what, how, by which version. Throws kOutputExists, kOutputBusy when
  // another program writes the same folder, kOtherPlan, kWriteFailed.
  StagedFolder(std::string path, Options options, std::string plan);
  // What was not published stays for --resume.
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::string& folder() const { return staging_; }  // where to write
  static std::string staging_path(const std::string& path);
  static std::string log_path(const std::string& folder);  // where to keep the log of what is done
  // Whether a file of that name in the folder goes before it is published.
  static bool is_own(std::string_view name);
  bool resumes() const { return resumes_; }
  // Whether a result for `path` was begun and not published: the same plan can go on with it.
  static bool is_begun(const std::string& path);

  // Throws kWriteFailed; then nothing has changed under the name. pre: what is in folder() is written, and
  // durable where that is asked for.
  void publish();

 private:
  void open_staging();
  bool begin_plan(const std::string& plan);
  void rename_into_place() const;
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_, parent_, name_, staging_;
  Options options_;
  bool resumes_ = false;
  int fd_ = -1;  // of the staging folder, locked
};

}  // namespace mckpt
