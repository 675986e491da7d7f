// OutputRules: where a command may write, so that no command damages what it reads.
//
//   a folder     is not part of what is read and contains nothing of it, under any path; an existing folder
//                is replaced only if the user asked for that, and only if all files in it are parts of a
//                result (io/output/result_files.h)
//   a file       may be new in a folder that is read, but replaces nothing in that folder; a file of weights
//                is not made there either: programs would load it with the folder, or instead of it
//   a report     replaces another report of mckpt and nothing else, and is not inside what is read or made
//
// Example: with the source /data/run, the result /data/run/out is refused, and so is /data (it would replace
// the source), and so is /mnt/run if /mnt is the same folder as /data, mounted twice.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace mckpt::impl {

class Error;

// Throws kUsage for a path that is empty or begins with ~/. `of`: what it is the path of, for the message.
void refuse_empty_path(const std::string& path, const char* of);

// The sources of one command, with a check for each kind of output. Immutable, so thread-safe.
class OutputRules {
 public:
  // `sources`: the files and folders that the user named, first what the result is made of. `files`: the
  // files that are read; links of a source may lead to files in other folders.
  explicit OutputRules(const std::vector<std::string>& sources, const std::vector<std::string>& files = {});

  // Each throws kOutputExists. Whether an existing result may be replaced is checked by StagedFolder and
  // StagedFile.
  void check_folder(const std::string& path) const;
  void check_file(const std::string& path) const;
  // `results`: the files and folders that the command makes besides the report.
  void check_report(const std::string& path, const std::vector<std::string>& results) const;

 private:
  Error inside(const std::string& path, const std::string& source) const;
  std::string words_of(const std::string& source) const;
  std::string found_of(const std::string& source) const;

  std::vector<std::string> sources_;  // from the root, without links
  std::set<std::string>
      file_folders_;  // the folders of the files that are read, from the root, without links
};

// Throws kOutputExists if a regular file that is not a report of mckpt has the name.
void refuse_other_than_report(const std::string& path);

// Whether two paths lead to one place; the last parts of either need not exist.
bool same_place(const std::string& one, const std::string& other);

// Throws kUsage if two of the files that a command writes are one place: the second would replace the first.
void refuse_shared_places(const std::vector<std::string>& files);

}  // namespace mckpt::impl
