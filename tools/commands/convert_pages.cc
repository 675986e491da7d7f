// Paragraphs and examples of the help page of each conversion; its options are fields (options/fields.h).
#include "tools/commands/convert_pages.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {
namespace {

struct Page {
  std::string_view kind;
  std::vector<std::string_view> paragraphs, examples;
};

const std::vector<Page>& pages() {
  static const std::vector<Page> kPages =
      {
          {"hf-to-fsdp",
           {"Writes the checkpoint that a Megatron-FSDP run of this grid would have saved: each rank's chunks in a file of their own, under the keys of fsdp_dtensor.",
            "Values are kept bit for bit unless --dtype or --params-dtype says otherwise. A real run with fp32 main weights saves what --params-dtype auto --dtype fp32 writes.",
            "Of a checkpoint with the model's own names the tensors of the model are taken; its optimizer states are left out, and named.",
            "Under mpirun the ranks share the work."},
           {"mckpt convert hf-to-fsdp Qwen3-30B-A3B ckpt --tp 2 --ep 4",
            "mckpt convert hf-to-fsdp global_step_100/actor ckpt --tp 2 --dp 4",
            "mpirun -n 8 mckpt convert hf-to-fsdp Qwen3-30B-A3B ckpt --tp 2 --dp 4"}},
          {"to-fsdp",
           {"Writes the checkpoint that a Megatron-FSDP run of this grid would have saved: each rank's chunks in a file of their own, under the keys of fsdp_dtensor.",
            "Values are kept bit for bit unless --dtype or --params-dtype says otherwise. A real run with fp32 main weights saves what --params-dtype auto --dtype fp32 writes.",
            "Of a checkpoint with the model's own names the tensors of the model are taken; its optimizer states are left out, and named.",
            "A checkpoint of Megatron is written with its optimizer states and objects, in the types and with the spelling that it has. mckpt convert reshard keeps its format.",
            "Under mpirun the ranks share the work."},
           {"mckpt convert to-fsdp Qwen3-30B-A3B ckpt --tp 2 --ep 4",
            "mckpt convert to-fsdp global_step_100/actor ckpt --tp 2 --dp 4",
            "mckpt convert to-fsdp torch_dist_ckpt ckpt --assets Qwen3-30B-A3B --dp 8",
            "mpirun -n 8 mckpt convert to-fsdp Qwen3-30B-A3B ckpt --tp 2 --dp 4"}},
          {"fsdp-to-hf",
           {"Writes a Hugging Face folder: the tensors under their original names, in their original packing and data types, and config, tokenizer and code byte for byte. Names, packing and these files are taken from --assets, or from the checkpoint itself if mckpt made it.",
            "The checkpoint may be of any grid, fsdp_dtensor, torch_dist or Megatron's rank files, or one with the model's own names: torch DCP of FSDP2, accelerate or torchtitan, or rank files of FSDP, verl or DeepSpeed ZeRO. Of these the config is also found where the training framework put it, types are kept, and models without a table are taken too. Under mpirun the ranks share the work."},
           {"mckpt export ckpt out_hf", "mckpt export ckpt/iter_0001000 out_hf --max-shard-size 10GB",
            "mckpt export ckpt out_hf --assets Qwen3-30B-A3B --dtype bf16",
            "mckpt export ckpt out_hf --scheme fp8-block",
            "mckpt export checkpoint-500/pytorch_model_fsdp_0 out_hf",
            "mckpt export adapter out_hf --base Qwen3-30B-A3B"}},
          {"to-mcore",
           {"Writes the torch_dist checkpoint that a Megatron run of this grid would have saved: the keys of megatron.core's dist_checkpointing, with common.pt and metadata.json. A run on any other grid loads it too: the grid decides only how tensors are cut into boxes and files, and what the args say; how stages divide the layers, only which file a layer is in.",
            "Names are those of a run with Transformer Engine's modules, Megatron's default. A run with Megatron's own modules (--transformer-impl local) has the same names in torch_dist, but for one: it looks for the norm in front of experts as mlp.linear_fc1.layer_norm_weight, and does not find pre_mlp_layernorm.weight. --spelling unfused-norms writes that name; of a torch_dist source each norm keeps its own.",
            "States of the optimizer of an fsdp_dtensor checkpoint are written by parameter, with the options of its groups, as a distributed optimizer saves and loads them (fully_reshardable); those of the files of ranks as an optimizer that is not distributed does. Values are kept bit for bit unless --dtype or --params-dtype says otherwise.",
            "Under mpirun the ranks share the work."},
           {"mckpt convert to-mcore Qwen3-30B-A3B ckpt --tp 2 --ep 4",
            "mckpt convert to-mcore Qwen3-30B-A3B ckpt --dry-run --json",
            "mckpt convert to-mcore fsdp_ckpt ckpt --assets Qwen3-30B-A3B --weights-only --dtype bf16"}},
          {"reshard",
           {"Writes the same weights, optimizer states and objects, bit for bit, as chunks of the ranks of another grid or strategy. The format of SRC stays: fsdp_dtensor, torch_dist, files of Megatron's ranks, any other DCP folder with its names. convert to-fsdp, to-mcore, to-pt and to-dcp change it.", "Files of ranks are written without optimizer states, and with states in SRC only with --weights-only. Of DCP folders with names that are not Megatron's, data-parallel ranks alone divide the rows.",
            "For --engine v2 the names are those of its state dict, weights are widened to fp32, and what it has no place for (args, iteration, schedules) is left out.",
            "Sizes of the grid that are not given are 1, whatever grid SRC has.",
            "The packing of parameters into buffers follows the model's config.json (--assets), or what mckpt stored in the checkpoint. Files beside the data, such as run_config.yaml, are copied; checksums of the old data files are not.",
            "Rows of the vocabulary beyond vocab_size of config.json are padding. They stay where the rows divide by tp; otherwise rows of zeros are added, in the states too, or padding is dropped, and a note says so.",
            "Under mpirun the ranks share the work."},
           {"mckpt convert reshard ckpt ckpt_on_8 --tp 4 --dp 2",
            "mckpt convert reshard ckpt out --assets Qwen3-30B-A3B --ep 8 --weights-only",
            "mckpt convert reshard torch_dist_ckpt out --assets Qwen3-30B-A3B --tp 2 --dp 4",
            "mckpt convert reshard fsdp2_ckpt out --dp 8"}},
          {"to-pt",
           {"Writes mp_rank_*/model_optim_rng.pt, what each rank of a Megatron run on this grid saves with --ckpt-format torch: the tensors that it holds, under their names there, and args. There are no optimizer states.",
            "Names are those of a run with Transformer Engine's modules, Megatron's default: norms are fused (self_attention.linear_qkv.layer_norm_weight), experts are grouped (mlp.experts.linear_fc1.weight0). A run with Megatron's own modules (--transformer-impl local) has other names: --spelling unfused-norms writes those of its norms, and those of its experts are not written. The layers of MTP have the name of Megatron-Core 0.19 (mtp_model_layer); --spelling mtp-transformer-layer writes that of versions up to 0.16 (transformer_layer).",
            "Values are kept bit for bit unless --dtype or --params-dtype says otherwise. Under mpirun the ranks share the work."},
           {"mckpt convert to-pt Qwen3-30B-A3B ckpt --tp 2 --ep 4",
            "mckpt convert to-pt Qwen3-0.6B ckpt --tp 2 --pp 2 --vpp 2",
            "mckpt convert to-pt fsdp_ckpt ckpt --tp 4 --iteration 1000"}},
          {"to-safetensors",
           {"Writes the model's tensors into one safetensors file, under the names that they have in a Hugging Face folder. Optimizer states and objects are left out, and named. No config.json is needed; where there is one, an output layer that the model ties to the embedding is not written twice.",
            "Under mpirun the ranks share the work."},
           {"mckpt convert to-safetensors checkpoint-500/pytorch_model_fsdp_0 model.safetensors",
            "mckpt convert to-safetensors torchtitan/step-1000 model.safetensors --dtype bf16",
            "mckpt convert to-safetensors hf_folder one_file.safetensors --dry-run"}},
          {"to-dcp",
           {"Writes a folder that torch.distributed.checkpoint loads into any number of ranks, bit for bit and with names kept. A DCP folder keeps its nested dicts, its optimizer states and its objects, and one of torch_dist its common.pt and metadata.json. Of another checkpoint with the model's own names the tensors of the model are written.",
            "Under mpirun the ranks share the work."},
           {"mckpt convert to-dcp Qwen3-0.6B qwen_dcp --dp 8",
            "mckpt convert to-dcp Qwen3-0.6B qwen_dcp --section app.model.",
            "mckpt convert to-dcp torchtitan/step-1000 weights --weights-only --dtype bf16"}},
          {"dequantize",
           {"Writes the values of quantised weights: FP8 with scales of blocks, rows or tensors, MXFP8, MXFP6, MXFP4, NVFP4, and INT4 and INT8 of compressed-tensors. Values are those of the reference implementations, bit for bit. Scales are left out, and so is quantization_config in config.json; everything else is copied.",
            "Under mpirun the ranks share the work."},
           {"mckpt convert dequantize DeepSeek-V3 DeepSeek-V3-bf16",
            "mckpt convert dequantize gpt-oss-20b gpt-oss-20b-bf16 --dry-run",
            "mckpt convert dequantize model-00001-of-00163.safetensors part.safetensors --dtype fp32"}},
          {"quantize",
           {"Writes codes and scales for the weights that published models of a scheme have quantised, and the entry quantization_config of config.json.",
            "like-source makes the tensors, files and config of --like. A block whose values are those that --like has keeps its scale, and so has the bytes that it had; a block that was trained gets a new scale."},
           {"mckpt convert quantize Qwen3-8B Qwen3-8B-FP8 --scheme fp8-block",
            "mckpt convert quantize gpt-oss-20b-bf16 out_hf --scheme mxfp4 --dry-run",
            "mckpt convert quantize trained_hf out_hf --like DeepSeek-V3"}},
          {"to-hdf5",
           {"Archives every file of a checkpoint in HDF5, bit for bit. h5py, h5dump and h5diff see each tensor whole, under its name and as numbers, whatever ranks have its rows. All commands read an archive as they read the checkpoint itself.", "A folder has archive.h5, with all tensors, and beside it a file for each file of the checkpoint that has large ones. Under mpirun the ranks share the work."},
           {"mckpt convert to-hdf5 ckpt/iter_0000010 archive", "mckpt convert to-hdf5 Qwen3-0.6B qwen.h5",
            "mckpt export archive hf_folder"}},
          {"from-hdf5",
           {"Writes the files that an archive was made of, byte for byte, but for mckpt_manifest.json, which is made anew. The data are compared with the sums in the archive while they are copied.",
            "Under mpirun the ranks share the work."},
           {"mckpt convert from-hdf5 qwen.h5 Qwen3-0.6B", "mckpt convert from-hdf5 archive ckpt/iter_0000010",
            "mckpt convert from-hdf5 model.h5 model.pt --dry-run"}},
          {"pt-to-safetensors",
           {"Copies every tensor bit for bit under its own name. If the target format cannot store a tensor or an object, the command names it and writes nothing. Prints the path of the result."},
           {"mckpt convert pt-to-safetensors model.pt model.safetensors",
            "mckpt convert pt-to-safetensors model.pt model.safetensors --overwrite",
            "mckpt convert pt-to-safetensors checkpoint.pt model.safetensors --include 'model.*' --tensors-only"}},
          {"safetensors-to-pt",
           {"Copies every tensor bit for bit under its own name. If the target format cannot store a tensor or an object, the command names it and writes nothing. Prints the path of the result."},
           {"mckpt convert safetensors-to-pt model.safetensors model.pt",
            "mckpt convert safetensors-to-pt hf_folder model.pt --dry-run",
            "mckpt convert safetensors-to-pt hf_folder model.pt --exclude '*lm_head*'"}},
          {"ungroup",
           {"A hybrid model with groups, such as [*-]M, stores the layers of a group under one number: as decoder.layers.0.mlp.* in torch_dist, as decoder.layers.0.layers.1.mlp.* in fsdp_dtensor. The result is the checkpoint of the same model without brackets, *-M, in which every layer has its own number: decoder.layers.1.mlp.*.",
            "Weights, optimizer states and objects are copied bit for bit and keep the chunks and files of the ranks that wrote them. num_layers and the pattern in the args are replaced. A key that has no place in the result is an error that names it.",
            "`mckpt pattern` explains a pattern. Under mpirun the ranks share the work."},
           {"mckpt convert ungroup ckpt ckpt_flat", "mckpt convert ungroup ckpt ckpt_flat --weights-only",
            "mckpt convert ungroup ckpt/iter_0001000 out --pattern 'M[M*-]|[M*-]' --dry-run"}},
          {"group",
           {"The inverse of `convert ungroup`: the layers of SRC become the groups of --pattern. --keys says how groups are named: logical is decoder.layers.0.mlp.*, as a Transformer model names its layers and as torch_dist stores groups; member is decoder.layers.0.layers.1.mlp.*, as fsdp_dtensor stores them. SRC may already have groups, under names of the other kind.",
            "Weights, optimizer states and objects are copied bit for bit and keep the chunks and files of the ranks that wrote them. num_layers and the pattern in the args are replaced. A key that has no place in the result is an error that names it.",
            "`mckpt pattern` explains a pattern. Under mpirun the ranks share the work."},
           {"mckpt convert group ckpt_flat ckpt --pattern '[*-]M[*-]'",
            "mckpt convert group ckpt_flat ckpt --pattern '[*-]M[*-]' --dry-run",
            "mckpt convert group ckpt out --pattern '[*-][*-]' --keys logical"}},
          {"hybrid-to-gpt",
           {"Layer i of a GPT model is a pair of layers of the hybrid model: its i-th * and its i-th - or E. The pattern must have as many * as - or E, and no other layers than M. torch_dist stacks the layers of a GPT model in one tensor; --layers indexed keeps them apart, as models with unlike layers store them.",
            "Weights, optimizer states and objects are copied bit for bit and keep the chunks and files of the ranks that wrote them. num_layers and the pattern in the args are replaced. A key that has no place in the result is an error that names it.",
            "`mckpt pattern` explains a pattern. Under mpirun the ranks share the work."},
           {"mckpt convert hybrid-to-gpt ckpt gpt", "mckpt convert hybrid-to-gpt ckpt gpt --layers indexed",
            "mckpt convert hybrid-to-gpt ckpt gpt --pattern 'M*-M*-' --without-mixers"}},
          {"gpt-to-hybrid",
           {"A layer of a GPT model becomes two layers of the hybrid model, attention and MLP: layer i becomes the i-th * and the i-th - or E of --pattern. With groups, '[*-][*-]', the result is the checkpoint of a grouped model.",
            "Weights, optimizer states and objects are copied bit for bit and keep the chunks and files of the ranks that wrote them. num_layers and the pattern in the args are replaced. A key that has no place in the result is an error that names it.", "`mckpt pattern` explains a pattern. Under mpirun the ranks share the work."},
           {"mckpt convert gpt-to-hybrid gpt ckpt --pattern '*-*-*-'",
            "mckpt convert gpt-to-hybrid gpt ckpt --pattern '*-*-*-' --norms fused",
            "mckpt convert gpt-to-hybrid gpt ckpt --pattern 'M*-M*-' --without-mixers"}},
      };
  return kPages;
}

}  // namespace

void describe_conversion(std::string_view kind, CommandLine& line) {
  auto page = std::ranges::find(pages(), kind, &Page::kind);
  if (page == pages().end()) return;
  for (std::string_view paragraph : page->paragraphs) line.description(std::string(paragraph));
  // `mckpt export` has the page of fsdp-to-hf.
  constexpr std::string_view kExport = "mckpt export ";
  for (std::string_view example : page->examples)
    line.example(kind == "fsdp-to-hf" ? cat("mckpt ", line.command(), " ", example.substr(kExport.size()))
                                      : std::string(example));
}

}  // namespace mckpt::impl
