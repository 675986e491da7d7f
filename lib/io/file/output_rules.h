// What may be written where, of everything that a command writes:
//
//   a folder     neither is, holds nor is inside what is read, under any path; one that is there is replaced
//                only where that was asked for, and only if all its files are parts of a result
//                (io/file/result_files.h)
//   a file       may be new in a folder that is read, but replaces nothing that is read, and nothing in there
//   a report     replaces another report of mckpt and nothing else, and is inside nothing that is read or made
#pragma once

#include <set>
#include <string>
#include <vector>

namespace mckpt::impl {

class OutputRules {
 public:
  // `sources`: the files and folders that the user named. `files`: those that are read, which links may have
  // led to.
  explicit OutputRules(const std::vector<std::string>& sources, const std::vector<std::string>& files = {});

  // Each throws kOutputExists. Whether what is there may be replaced is asked by StagedFolder and StagedFile.
  void check_folder(const std::string& path) const;
  void check_file(const std::string& path) const;
  // `results`: the files and folders that the command makes beside it.
  void check_report(const std::string& path, const std::vector<std::string>& results) const;

 private:
  std::vector<std::string> sources_;    // from the root, without links
  std::set<std::string> file_folders_;  // those of the files that are read, alike
};

// Throws kOutputExists where something other than a report of mckpt has the name.
void refuse_other_than_report(const std::string& path);

// Whether two paths lead to one place; the last parts need not be there.
bool same_place(const std::string& one, const std::string& other);

}  // namespace mckpt::impl
