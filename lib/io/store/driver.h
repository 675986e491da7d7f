// Driver: the row of one format on disk, by which paths are recognised and opened, and which says what
// conversions, comparisons and answers do differently for it. Nobody else asks which format a store has:
//
//   store.driver().flat          tensors without shapes         (not: store.format() == some format)
//
// The rows are in io/store/open/drivers.inc. A new format is a folder with its reader, and one row;
// docs/conventions.md lists the pages and tests that it brings along.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/store/format.h"

namespace mckpt::impl {

enum class DcpDialect : u8;  // io/store/dcp_dialect.h
class Store;
struct FileLook;    // io/store/open/file_look.h
struct FolderLook;  // io/store/open/folder_look.h
struct OpenOptions;

struct Driver {
  Format format{};
  std::string_view name{};           // what people and JSON are shown; a literal, which ends with a NUL
  std::string_view recognised_by{};  // for people; "": the row is not shown
  std::string_view a_file{};         // a file of the format, as a refusal names what it expected
  std::string_view suffixes{};       // of such files, with a blank between two; a word with one is a path
  FormatFamily family = FormatFamily::kOther;
  bool reads = true;    // false: it is only called by its name where it is met
  bool writes = false;  // a conversion makes it

  // Properties of its stores, as far as anything is done differently for them.
  bool hf_weights = false;   // whole tensors of a model under its own names, as Hugging Face has them
  bool hf_folder = false;    // a folder, which may have a config.json
  bool of_a_run = false;     // a training program's: names, and stacks of experts, are those in memory
  bool ranks_apart = false;  // each rank's tensors are by themselves: mp_rank_00/..., copies included
  bool flat = false;         // of ranks, whose tensors are one-dimensional: their shapes are in no file
  bool open_ended = false;   // no file says how many there are: that the last ones are missing is not seen
  bool has_sums = false;     // a CRC-32 of every record, as zip archives have it
  bool zero = false;         // parts of flat groups of an optimizer's ranks, as DeepSpeed ZeRO saves them
  std::optional<DcpDialect> dialect{};  // of the names in a DCP folder

  // How paths are recognised. A file is opened by the first row that takes it.
  bool (*is_file)(const FileLook&) = nullptr;
  std::unique_ptr<Store> (*open_file)(const std::string& path, const OpenOptions& opening) = nullptr;
  // For a folder the rows are asked by turn, the lowest first; null from open_folder() is "none of mine", and
  // the next one is asked. A row without open_folder() only says that the folder is a checkpoint.
  int turn = 0;
  bool (*is_folder)(const FolderLook&) = nullptr;
  std::unique_ptr<Store> (*open_folder)(const FolderLook&) = nullptr;
  // Whether the names alone show a checkpoint, so that a search in folders stops here.
  bool sure = true;
};

// All rows, in the order in which people are shown them.
std::span<const Driver> all_drivers();
const Driver& driver_of(Format format);

}  // namespace mckpt::impl
