// The layout in which verl 0.9 saves a run with Megatron: a folder of folders, and a list of its contents
//that is written last.
//
//   actor/ckpt_contents.json       {"schema_version": 2, "framework": "megatron", "contents": {"model": {"path": ..}, ..}}
//         model/dist_ckpt/         torch_dist: the weights, in the key "model"
//         model/huggingface/       the weights as Hugging Face has them, or config.json alone, or nothing
//         model/huggingface/adapter/   of a run with PEFT: the adapter; its base is not beside it then
//         optimizer/dist_ckpt/     torch_dist: the optimizer and its schedule
//         extra/dist_ckpt/         torch_dist: random states
//
// Each of the folders may be there and empty, so the list says what was saved. Without the list the save did
// not finish. Up to verl 0.8 there was one dist_ckpt/ with all of it, and no list.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace mckpt::impl {

class Folder;
class Store;
struct Finding;

inline constexpr std::string_view kVerlContents = "ckpt_contents.json";
// The adapter in PEFT's form, if the run trained one: the base is then frozen, and not saved as Hugging Face.
inline constexpr std::string_view kVerlAdapter = "model/huggingface/adapter";

// Opens such a folder: the shards of weights, optimizer and random states as one store; the Hugging Face
// folder where the weights are there alone. Throws kUnknownFormat for a list that is not of this layout,
// kIncomplete where a part that it names is not there. pre: the folder has the list.
std::unique_ptr<Store> open_verl(const Folder& folder);

// Findings about files that the list names, that opening does not need, and that are lost, and about entries
// for them that cannot be read: a problem for the Hugging Face folder of the weights beside their shards,
// warnings for settings. pre: the folder has the list, and was opened.
std::vector<Finding> lost_beside_verl(const Folder& folder);

// The folder of the adapter, if the list says that the weights are as Hugging Face has them, and these are an
// adapter alone; "" for anything else. `folder`: the actor's, or the folder of the run or the step, which
// lead to it. Throws nothing: what is wrong with the list is said where it is opened.
std::string verl_adapter(const Folder& folder);

// Throws kIncomplete if the folder is of this layout and has no list. pre: it has none.
void refuse_unfinished_verl(const Folder& folder);

}  // namespace mckpt::impl
