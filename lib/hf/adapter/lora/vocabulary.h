// The parameters that a base has under several names: the embedding of tokens, which is the output layer of
// many models, too, and the embeddings of an encoder and a decoder; and beside these the bias of an output
// layer. The class of the model says which they are (tied_classes.h); a folder has one of the names, or equal
// tensors of several.
//
//   BartForConditionalGeneration   model.shared.weight = model.encoder.embed_tokens.weight =
//                                  model.decoder.embed_tokens.weight = lm_head.weight
//
// PEFT wraps these as modules of their own. Its result depends on what the file of the adapter has:
//
//   factors or rows of tokens of any of them       one parameter still, which gets all of it in turn
//   pairs of factors that are one (tied_factors.h) one parameter still, which gets the product once
//   a tensor of a module that modules_to_save has  values of its own for this name; all others keep the parameter's,
//                                                  and none are tied any more
//   the same where PEFT ties (ties_saved())        one parameter, replaced
//   any other tensor                               one parameter, replaced
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class BaseTensors;
class Store;
struct AdaptedTensor;
struct AdapterNames;
struct BaseFacts;
struct LoraConfig;

// Whether the name is one that many models give the weight of such a module, in memory or on disk.
bool is_embedding_weight(std::string_view name);
bool is_head_weight(std::string_view name);

struct TiedTensor {
  struct Name {
    std::string memory, disk;
    i64 tensor;  // of the base; -1: it has others of the names
  };
  i64 tensor;               // of the base, by the first name that it has
  std::vector<Name> names;  // in the order of the modules
};

class Vocabulary {
 public:
  // `names`: of the adapter that is read with the base.
  Vocabulary(const BaseTensors& base, const BaseFacts& facts, const AdapterNames& names);

  const std::vector<TiedTensor>& tied() const { return tied_; }
  // By a name in memory or on disk; null: the name has a tensor of its own.
  const TiedTensor* tied(std::string_view name) const;
  const TiedTensor::Name* entry(std::string_view name) const;
  // The place of a module's weight among its names. -1 for other modules.
  i64 place(std::string_view module) const;
  // Throws kUnsupportedTensor where a folder of the base cannot have these names apart, or where it is not
  // known which names there are. `own`: the names with values of their own.
  void require_divisible(const std::vector<std::string>& own) const;
  // Throws kUnsupportedTensor for rows of tokens of one module and factors of another that is tied to it.
  void refuse_rows_beside_factors(const AdapterNames& names, const Store& adapter) const;

 private:
  bool of_class(const BaseTensors& base, const BaseFacts& facts, const AdapterNames& names);
  void by_words(const BaseTensors& base, const AdapterNames& names);

  std::vector<TiedTensor> tied_;
  std::string architecture_;
  bool known_ = false, fixed_ = false;  // the class, and its ties
};

// Tensors of the adapter that are the values of one name of a tied tensor.
using OwnValues = std::map<const TiedTensor::Name*, i64>;
// Gives the names of tied tensors what the adapter makes of them: one tensor where the base has one, and all
// where one has values of its own. `tensors`: how many the base has. Throws as require_divisible().
void divide(const Vocabulary& vocabulary, const OwnValues& own, i64 tensors,
            std::map<i64, AdaptedTensor>& adapted);

// Whether PEFT ties the modules of the vocabulary that an adapter of this config saves whole, when it loads
// it.
bool ties_saved(const LoraConfig& config);
// Whether it tied those with factors when it made the adapter: the config then has the embedding in
// target_modules, by a word or by its full name, and the factors of the output layer are in the file as well.
bool ties_factors(const LoraConfig& config, const AdapterNames& names);

}  // namespace mckpt::impl
