// ChangedFile: which bytes of a file differ from its card, and whose they are.
//
//   model.safetensors: tensor 'b': bytes 816..1327 are not those of the card: they are those of tensor 'a'
//   model.safetensors: bytes 0..303, before the first tensor, are not those of the card
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "io/card/card.h"

namespace mckpt::impl {

class ByteSource;

// Refers to the card. Thread-safe.
class ChangedFile {
 public:
  explicit ChangedFile(const Card& card);

  // A problem for each part of the file and each stretch between parts that changed; at least one. pre: the
  // size or the SHA-256 of the file is not the card's. Reads the file, twice if its size changed.
  std::vector<Finding> find(const ByteSource& file, i32 number,
                            const std::function<void(i64 bytes)>& progress) const;

 private:
  // Where the card has bytes of a digest.
  struct Place {
    const CardTensor* tensor;
    const CardChunk* chunk;
  };
  struct Part;
  std::vector<Part> parts_of(i32 file) const;
  Finding of_part(const ByteSource& file, const Part& part, const std::string* digest, i64 grown) const;
  std::string what_it_is(const ByteSource& file, const Part& part, const std::string& digest,
                         i64 grown) const;
  Finding of_stretch(i32 file, const SummedStretch& stretch, const std::vector<Part>& parts) const;

  const Card& card_;
  std::vector<std::vector<Place>> by_file_;
  std::unordered_map<std::string, Place> by_digest_;
};

}  // namespace mckpt::impl
