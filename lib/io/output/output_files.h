// OutputFiles: the data files of a result while they are written. All of them are created at their final
// sizes before the first write, so that a full disk is found at once, and so that any thread may write
// anywhere.
//
//   OutputFiles out(folder, {{"__0_0.distcp", 4096}, {"__0_1.distcp", 8192}});     created, space reserved
//   out.write(1, 832, bytes);                                                      any thread, any order
//   out.sync();                                                                    fsync of every file
//
// The folder is one that no reader knows yet (io/output/staged_folder.h). A result may have thousands of
// files: at most kMostOpen are open at a time; to open one more, the one that was opened first is closed.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/output/copy_sink.h"

namespace mckpt::impl {

// A file to create, and its final size.
struct OutputFile {
  std::string name;  // relative to the folder; "mp_rank_00/model_optim_rng.pt" is in a folder of its own
  i64 bytes = 0;
};

// The files of one result in one process; other ranks open the same files with kGoOn. Owns the descriptors.
class OutputFiles final : public CopySink {
 public:
  static constexpr i64 kMostOpen = 256;

  // kCreate: it is an error if a file of the name exists. kGoOn: such a file is kept with its bytes, up to
  // its final size.
  // kReplace: such a file is emptied.
  enum class Begin { kCreate, kGoOn, kReplace };
  // kDirect: large aligned parts of a write go to the disk past the page cache (O_DIRECT), which makes
  // durable writing fast. The other parts, and everything on a file system without O_DIRECT, go through the
  // cache.
  enum class How { kCached, kDirect };

  // Creates every file, with its folders if its name has some, and reserves its space. No link is followed
  // below `folder`, and a file that has a second name is not written to. pre: `folder` exists and is not a
  // link. Throws kWriteFailed; where the disk is full, the error says how many bytes the file and the result
  // need.
  OutputFiles(std::string folder, std::vector<OutputFile> files, Begin begin = Begin::kCreate,
              How how = How::kCached);
  ~OutputFiles() override;
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  // Thread-safe. Throws kWriteFailed.
  void write(i32 file, i64 offset, std::span<const u8> bytes) override;
  // Makes all that was written durable. A failure is final: after a failed fsync the kernel may have dropped
  // the bytes, so a second try could report success without them. A file that could not be closed meanwhile
  // is such a failure, too: a file server tells it at that moment and not again.
  void sync();

  const std::vector<OutputFile>& files() const { return files_; }

 private:
  struct Open;
  int open_inside(const std::string& name, int flags) const;
  void make(i32 file, Begin begin);
  std::shared_ptr<Open> open(i32 file);
  void write_cached(i32 file, const Open& opened, i64 offset, std::span<const u8> bytes);
  std::span<const u8> write_direct(const Open& opened, i64 offset, std::span<const u8> bytes);
  [[noreturn]] void fail(i32 file, const char* what, i64 offset, int error) const;

  std::string folder_;
  int folder_fd_ = -1;
  std::vector<OutputFile> files_;
  How how_;
  std::mutex mutex_;
  // The last file whose closing failed, and the errno; 0: none. The open files below write it.
  std::atomic<u64> unclosed_ = 0;
  std::vector<std::shared_ptr<Open>> open_;  // by file; null: not open
  std::vector<i32> recent_;                  // the open ones, in the order of opening
};

}  // namespace mckpt::impl
