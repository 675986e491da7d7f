// open(): the one way from a path to an Opened, for every format and every command.
//
//   path     names                   with_table             without
//   a hub cache's folder, a folder with config.json and safetensors, a lone file, verl, FSDP2, ZeRO, torchtitan
//            the model's own         table                  own
//   fsdp_dtensor, torch_dist, files of Megatron's ranks
//            Megatron's              sharded                sharded
//
// Headers are read, and data only where a decision needs them: tensors that a model ties are compared.
#pragma once

#include <memory>
#include <string>

#include "convert/open/opened.h"
#include "convert/open/options.h"
#include "convert/open/own_model.h"

namespace mckpt::impl {

struct RunSetup;

// Plain values.
struct OpenAs {
  std::string source{};  // as the user named it
  // Folder with config.json, accepted damage, files and tables of a model; and how a sharded checkpoint is
  // opened.
  CheckpointOptions how{};
  std::string model_dict{};  // as in OwnModelOptions
  bool with_table = true;    // a model under its own names gets the map of its family
  bool model_alone = false;  // a checkpoint of Megatron is refused
  int threads = 1;           // that compare tied tensors
};

// Throws what open_store() throws; kUnknownFormat for a checkpoint of Megatron where a model is asked for,
// and for a Hugging Face folder where it is not; kNotFound for a folder with a config alone; kUsage for
// `assets` or `model_dict` of a source that has no use for them; what open_hf_model(), open_own() and
// open_sharded() throw.
Opened open(const OpenAs& how);
Opened open(std::unique_ptr<Store> store, const OpenAs& how);

// The four kinds of an Opened, of stores that are open.
// A folder with config.json and safetensors is a model without a look at its tensors. Opens the path itself.
Opened open_table(const OpenAs& how);
// The same for a store that was opened at the path; null: the path is opened here.
Opened open_table(std::unique_ptr<Store> store, const OpenAs& how);
// These take the store. Both throw kUnaccounted, kSourceShape and kContradiction where names, shapes or the
// config do not agree; openers.h has the other codes of each.
Opened open_own(std::unique_ptr<Store> store, const OwnModelOptions& how);
Opened open_sharded(std::unique_ptr<Store> store, const OpenAs& how);
// With a model that is known. `setup`: of the run, as far as the checkpoint does not say it.
Opened open_sharded(std::unique_ptr<Store> store, std::shared_ptr<const HfModel> model, const OpenAs& how,
                    const RunSetup& setup);
// As the files have it. `damage`: what refuse_damage() returned. `source`: as the user named it.
Opened open_plain(std::unique_ptr<Store> store, const std::string& source, std::vector<Finding> damage);
// A model that the caller has made.
Opened opened(OwnModel model);
// Turns a model under its own names into the tensors that are written of it: `own` becomes `plain`.
Opened as_written(Opened own);

// Whether the path is a folder with a config and safetensors files, which is a model without a look at its
// tensors.
bool is_model_folder(const std::string& path, const OpenOptions& opening);
// Whether the tensors belong to a model under its own names, in files of any format. False for checkpoints of
// Megatron.
bool is_of_model(const Store& store);

}  // namespace mckpt::impl
