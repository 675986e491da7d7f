// A folder that appears under its name only when it is whole. It is made in a hidden folder beside its place
// that carries the identity of the plan it is made by (io/file/staging_marks.h): a later run with the same plan
// can go on with what an interrupted one left. What was there before stays until then.
//
//   DIR/.NAME.mckpt-tmp/   -- write, fsync, rename, fsync of DIR -->   DIR/NAME/   -- last step, marks
//   removed
//
// Whatever is interrupted, one of these is on disk, and --resume goes on from each:
//
//   before the rename        NAME is as it was, .NAME.mckpt-tmp has the marks
//   after it                 NAME is the result and has the marks; .NAME.mckpt-tmp may be what NAME was
//   between two renames,     NAME is not there, .NAME.mckpt-old is what it was, and is put back by the next
//   run;
//     where one cannot swap  .NAME.mckpt-tmp has the marks
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/int.h"
#include "io/file/result_files.h"

namespace mckpt::impl {

class StagedFolder {
 public:
  struct Options {
    bool durable = true;   // false: no fsync; for scratch
    bool replace = false;  // a result that is there may be replaced
    bool resume = false;   // go on with what was begun; not together with `replace`
    const char* instead = "replace it with `overwrite`";  // of choosing another name for what is there
    FileNames copied{};                                   // files of the result that are copies, of any name
  };

  // What can be known before anything is written. Throws kOutputExists, also where files would be removed
  // that are no part of a result; kNoRoom when the file system has fewer bytes or files free.
  static void check(const std::string& path, const Options& options, const std::string& plan, i64 bytes,
                    i64 files);

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
  bool resumes() const { return resumes_; }
  // The run that is resumed had published the result: nothing is left to write, publish() does the rest.
  bool published() const { return published_; }
  // Whether a result for `path` was begun and not ended: the same plan can go on with it.
  static bool is_begun(const std::string& path);

  // `last_step` is done when the result has its name. Throws kWriteFailed: before the result has its name,
  // then nothing has changed there; behind that, then the message says that it is published. pre: the files
  // in folder() are written, and durable where that is asked for.
  void publish(const std::function<void()>& last_step = {});

 private:
  bool go_on_with_published();
  void lock(const std::string& folder, bool make);
  void settle_old() const;
  bool begin_plan();
  void note_replaced() const;
  void rename_into_place() const;
  void remove_replaced() const;
  void conclude(const std::function<void()>& last_step) const;
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_, parent_, staging_, old_, plan_;
  Options options_;
  bool resumes_ = false, published_ = false;
  int fd_ = -1;  // of the folder that is made, locked
};

}  // namespace mckpt::impl
