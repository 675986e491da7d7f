// ModelConfig: the numbers of a model that rules and tables need (lib/hf reads them from config.json). A size
// that a family does not have is 0. It contains no names and no parsing, so a test can write a model as a few
// numbers:
//
//   ModelConfig m;  m.text.hidden = 16;  m.text.heads = 4;  m.text.kv_groups = 2;  m.text.head_dim = 8;
//
// The reader refuses negative numbers and numbers from 2^28 on, so a product of two fits 63 bits; rules check
// what must divide.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;

// Indexed attention is latent attention with an indexer, which chooses the keys that a query sees; a layer
// without one beside it uses the choice of the layer before, and its norms of the low-rank parts are the same
// modules. kSparseAttention: attention with an indexer, which chooses the positions that it looks at.
// kAttentionAndMamba: both read the same norm, and the layer adds what they give.
enum class Mixer : u8 {
  kNone,
  kAttention,
  kLatentAttention,
  kIndexedAttention,
  kGdn,
  kMamba,
  kSparseAttention,
  kAttentionAndMamba
};
enum class Ffn : u8 { kNone, kDense, kMoe };

// Where an attention layer has its keys and values from: projections for each; one projection for both; or
// the keys and values of an earlier layer, so that it has neither projection.
enum class KeyValues : u8 { kOwn, kOneTensor, kOfEarlierLayer };

// The kinds of attention layers of a model that saves each kind apart from the other, because their heads may
// have different sizes: of a window, and of all tokens. kOne: the model does not tell kinds apart.
enum class AttentionKind : u8 { kOne, kSliding, kGlobal };

// One layer: its mixer of tokens and its feed-forward part. Layers of hybrid stacks have one of the two, all
// others both.
struct LayerSpec {
  Mixer mixer = Mixer::kAttention;
  Ffn ffn = Ffn::kDense;
  i32 sizes = 0;  // 0: the tower's own; n: ModelConfig::layer_sizes[n - 1]
  AttentionKind kind = AttentionKind::kOne;

  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

// A tower: the language model, or the vision or audio model in front of it.
struct TowerConfig {
  i64 hidden = 0;
  i64 heads = 0, kv_groups = 0, head_dim = 0;
  i64 value_dim = 0;         // of a head's values, where it is not head_dim
  bool output_gate = false;  // queries and gates alternate by head in the Hugging Face q_proj
  bool head_gates = false;   // one row of gates for each query head, in a tensor of their own
  bool qkv_bias = false, proj_bias = false;
  bool qk_norm = false;
  KeyValues key_values = KeyValues::kOwn;
  bool sinks = false;         // one learnable softmax offset for each head
  bool clipped = false;       // linear layers of a tower have the ranges of what they read and give
  bool hash_routing = false;  // a table says which experts a token goes to; such routers have no bias
  i64 ngram_rows = 0;         // of the layer's table of n-grams; 0: it has none
  i64 ffn = 0;                // dense width
  bool gated_mlp = true;
  bool swiglu = true;         // gated and SiLU: fc1 is split into _w and _v in fsdp_dtensor
  bool whole_groups = false;  // Megatron does not cut a group of keys and values
  std::vector<LayerSpec> layers;

  i64 value_size() const { return value_dim > 0 ? value_dim : head_dim; }
};

// Mixture of experts: the number of routed experts and the width of each; `shared_ffn` is the width of the
// experts that every token passes; `latent` is the width that the experts work on if it is not the hidden
// size. A model can have a second pool of as many experts, of another width.
struct MoeConfig {
  i64 experts = 0, ffn = 0, shared_ffn = 0, latent = 0;
  i64 second_ffn = 0;        // of the second pool; 0: there is none
  bool expert_bias = false;  // a buffer of the router, always fp32
  bool shared_gate = false;
  bool router_bias = false;
};

// Multi-head latent attention: ranks of the low-rank projections, and the sizes of the parts of a head:
// without position (nope), rotary (rope), and of the values.
struct MlaConfig {
  i64 q_lora = 0, kv_lora = 0, nope = 0, rope = 0, v_dim = 0;  // q_lora 0: no low-rank queries
};

// The indexer of sparse attention: its heads and their size.
struct IndexerConfig {
  i64 heads = 0, head_dim = 0;
};

// DeepSeek-V4: attention beside keys that are compressed, `far_rate` of them into one (layers with an
// indexer: 4 into one); an output projection in groups of heads; residual streams that hyper connections mix,
// and the rank of their mixing where that is low; how many experts the table of a hash layer names for each
// token.
struct CompressedConfig {
  i64 far_rate = 0, out_groups = 0, out_lora = 0, streams = 0, mix_rank = 0, routed = 0;
};

// Tables of n-grams, in which some layers look up the tokens before each one (Qwen4-Exp): the largest n; the
// heads of a table and the width of each; the parts into which files cut a table; the taps of the convolution
// behind it. How many rows a table has is TowerConfig::ngram_rows.
struct NGramConfig {
  i64 size = 0, heads = 0, width = 0, parts = 0, kernel = 0;
};

// Gated delta net, a linear attention with a recurrent state: numbers and sizes of key and value heads, taps
// of the convolution.
struct GdnConfig {
  i64 key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, conv_kernel = 0;
  i64 qk() const { return key_heads * key_dim; }
  i64 v() const { return value_heads * value_dim; }
};

// Mamba-2: heads, their size, the size of a state, and the groups of heads that share their B and C.
struct MambaConfig {
  i64 heads = 0, head_dim = 0, state = 0, groups = 0, conv_kernel = 0;
  bool norm = true;  // before the output projection
  i64 inner() const { return heads * head_dim; }
  i64 group_state() const { return groups * state; }
};

// The parts of a vision tower besides its TowerConfig: the patches that it reads, and the mergers behind it.
// `merge` is the side of the square of patches that a merger joins; `temporal_merge` frames become one behind
// that.
struct VisionConfig {
  i64 in_channels = 0, patch = 0, temporal_patch = 0, merge = 0, positions = 0, out_hidden = 0;
  i64 deepstack = 0;  // number of deepstack mergers
  i64 projector = 0;  // width inside the projector to the language model
  i64 temporal_merge = 0, class_tokens = 0;
  i64 rows = 0, columns = 0;    // of a table of positions with two dimensions
  bool video_embedder = false;  // patches of two frames have an embedder of their own
  bool unstated = false;        // the config does not mention the sizes of the tower, so the tensors decide
  bool heads_stated = true;     // which no tensor shows
  bool final_norm = false;      // behind the layers, where a tower may have one or not
  bool rms_norms = false;       // norms of the layers without means and biases
  bool standardized = false;    // what the tower gives is shifted and scaled by two buffers
};

// The parts of an audio tower besides its TowerConfig: the frequencies that it reads, the channels of its
// convolutions (of the last one, where they differ) and the frequencies behind them, its positions, and the
// width of its output; the taps of the convolutions in its layers; the width inside the projector to the
// language model.
struct AudioConfig {
  i64 mel_bins = 0, channels = 0, bins = 0, positions = 0, out_hidden = 0;
  i64 kernel = 0, projector = 0, last_channels = 0;
};

// Multi-token prediction: `depths` blocks after the decoder, each with the same layers.
struct MtpConfig {
  i64 depths = 0;
  bool stated = true;             // false: the config does not mention MTP, so the tensors decide
  std::vector<LayerSpec> layers;  // of one depth
  // The sizes of the layers of each depth, as LayerSpec has them, where depths differ; else empty.
  std::vector<i32> sizes_of_depths;
  bool one_stage = false;  // Megatron's layers of MTP have these sizes only without pipeline stages
};

// All numbers of one model. `tied`: the output layer is the embedding, and the file has no lm_head.
struct ModelConfig {
  std::string model_type;
  i64 vocab = 0;
  bool tied = false;
  bool layer_norms = false;          // with means and biases, not RMS norms
  bool zero_centered_norms = false;  // the file, too, has norms less one
  std::optional<DType> dtype;        // of the parameters, if the config says it
  TowerConfig text, vision_tower, audio_tower;
  std::vector<TowerConfig> layer_sizes;  // of text layers that differ from `text`; their `layers` are empty
  i64 layer_input = 0;  // width of what each layer gets from an embedding of its own; 0: there is none
  bool no_context_parallel = false;  // Megatron's model of the family is not built with cp > 1
  bool tp_within_groups = false;     // nor with more tensor-parallel ranks than groups of keys and values
  bool one_tensor_rank = false;      // nor with more than one tensor-parallel rank
  bool own_modules = false;          // its layers are Megatron's own modules, not Transformer Engine's
  // torch_dist has each layer under its number, though all are alike: Megatron states the kinds of layers
  // as a list.
  bool layers_apart = false;
  bool listed_layers = false;  // its args list the layers with experts, also where all layers are alike
  MoeConfig moe;
  MlaConfig mla;
  IndexerConfig indexer;
  CompressedConfig compressed;
  NGramConfig ngrams;
  GdnConfig gdn;
  MambaConfig mamba;
  VisionConfig vision;
  AudioConfig audio;
  MtpConfig mtp;
};

}  // namespace mckpt::impl
