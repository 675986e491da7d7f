// Card: what verify found out about a checkpoint, to be kept, given away and checked again: the files with
// their SHA-256, the tensors with theirs and where their bytes are, the checks and what they did not look at.
//
//   make_card()    reads a checkpoint        io/card/make_card.h
//   card_json()    mckpt.card/1              io/card/card_json.h, which reads it too
//   card_text()    Markdown; sums of files   io/card/card_text.h
//   check_card()   a folder against a card   io/card/check_card.h
//
// A card is a value: equal checkpoints that were verified by equal commands have equal cards. It has no time
// of day.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "io/card/file_sums.h"
#include "io/store/finding.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

inline constexpr std::string_view kCardSchema = "mckpt.card/1";

// For a single file, `name` is its own.
struct CardFile : ListedFile {
  std::vector<SummedStretch> others{};  // the bytes of no tensor
};

// The stored bytes of a tensor, or of a piece of it. The bytes of a piece that is compressed, or in a view
// with strides, are more or other bytes than its values.
struct CardChunk {
  i32 file = -1;  // of Card::files
  i64 offset = 0, bytes = 0;
  std::string sha256{};
};

struct CardTensor {
  std::string name;
  std::string checkpoint{};  // the folder or file below the card's folder that has it; "" for the card's own
  std::string dtype{};
  std::vector<i64> shape{};
  std::string sha256{};  // of the values, contiguous and little-endian; "" if they could not be read
  std::vector<CardChunk> chunks{};
  bool located = true;  // false: bytes of the tensor are in places that only its format knows
};

// Two sides that were compared.
struct CardComparison {
  std::string source;
  bool equal = false;
  i64 tensors = 0;  // whose values were compared
  i64 rounded = 0;  // of them, after a cast to a type that does not hold all values of the source's
};

struct Card {
  std::string version{};                                     // of mckpt
  std::string command{};                                     // as it was given
  std::string name{};                                        // of the folder or file
  bool single_file = false;                                  // it is of one file
  std::string format{};                                      // "" if the checkpoint could not be opened
  std::vector<std::pair<std::string, std::string>> facts{};  // as inspect shows them
  std::vector<CardFile> files{};                             // ascending by name
  std::vector<std::string> ignored{};                        // names that are not listed, files or folders
  std::vector<CardTensor> tensors{};
  std::vector<std::string> made_of{};  // of a conversion: its sources
  std::string plan{};                  // of a conversion: its account, in words
  std::vector<Check> checks{};
  std::vector<Finding> findings{};
  std::vector<NotRead> unread{};  // files that no check looked at
  std::optional<CardComparison> comparison{};

  i64 bytes() const;         // of all files
  std::string root() const;  // SHA-256 over the digests of all files, in their order
  bool sound() const;        // no finding is a problem
};

}  // namespace mckpt::impl
