// The plans of mckpt/plain_plans.h: the engine's options of the words of the interface.
#include "mckpt/plain_plans.h"

#include "api/boundary.h"
#include "api/conversion_access.h"
#include "api/words.h"
#include "convert/plan/archive.h"
#include "convert/plan/dequantize.h"
#include "convert/plan/export.h"
#include "convert/plan/file.h"
#include "convert/plan/own.h"
#include "convert/plan/quantize.h"
#include "convert/plan/reshard/to_dcp.h"
#include "io/file/parallel.h"

namespace mckpt {
namespace {

// Of a PtToSafetensors or a ToPt.
template <typename What>
impl::FileOptions file_options(const What& what, int threads) {
  impl::check_threads(threads);
  return {.source = what.source,
          .target = what.target,
          .include = what.include,
          .exclude = what.exclude,
          .files = impl::opening_of(what.files, {what.source})};
}

}  // namespace

Conversion plan(const ToSafetensors& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    return ConversionAccess::make(
        impl::plan_to_safetensors({.source = what.source,
                                   .target = what.target,
                                   .assets = what.assets,
                                   .model_dict = what.model_dict,
                                   .accept = impl::accepted_codes(what.accept),
                                   .files = impl::opening_of(what.files, {what.source}),
                                   .types = impl::stored_types(what.dtype, what.dtype_rule),
                                   .threads = threads}));
  });
}

Conversion plan(const ToDcp& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    return ConversionAccess::make(impl::plan_to_dcp({.source = what.source,
                                                     .target = what.target,
                                                     .ranks = what.dp,
                                                     .section = what.section,
                                                     .assets = what.assets,
                                                     .model_dict = what.model_dict,
                                                     .weights_only = what.weights_only,
                                                     .dtype = impl::value_type_or_kept(what.dtype),
                                                     .accept = impl::accepted_codes(what.accept),
                                                     .files = impl::opening_of(what.files, {what.source}),
                                                     .threads = threads}));
  });
}

Conversion plan(const Dequantize& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    return ConversionAccess::make(impl::plan_dequantize({.source = what.source,
                                                         .target = what.target,
                                                         .dtype = impl::value_type(what.dtype, "dtype"),
                                                         .max_shard_bytes = what.max_shard_size,
                                                         .accept = impl::accepted_codes(what.accept),
                                                         .files = impl::opening_of(what.files, {what.source}),
                                                         .threads = threads}));
  });
}

Conversion plan(const Quantize& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    return ConversionAccess::make(impl::plan_quantize(
        {.source = what.source,
         .target = what.target,
         .to = impl::quantize_scheme(what.scheme, "the value of scheme", what.like.has_value()),
         .like = what.like.value_or(""),
         .max_shard_bytes = what.max_shard_size,
         .original_files = what.max_shard_size == kUsualShardSize,
         .files = impl::opening_of(what.files, {what.source})}));
  });
}

Conversion plan(const ToHdf5& what, int threads) {
  return impl::guarded([&] {
    impl::check_threads(threads);
    return ConversionAccess::make(impl::plan_to_hdf5({.source = what.source,
                                                      .target = what.target,
                                                      .single_file = what.single_file,
                                                      .assets = what.assets,
                                                      .accept = impl::accepted_codes(what.accept),
                                                      .files = impl::opening_of(what.files, {what.source})}));
  });
}

Conversion plan(const FromHdf5& what) {
  return impl::guarded([&] {
    return ConversionAccess::make(
        impl::plan_from_hdf5({.source = what.source,
                              .target = what.target,
                              .files = impl::opening_of(what.files, {what.source})}));
  });
}

Conversion plan(const PtToSafetensors& what, int threads) {
  return impl::guarded([&] {
    impl::FileOptions options = file_options(what, threads);
    return ConversionAccess::make(impl::plan_pt_to_safetensors(options, what.tensors_only));
  });
}

Conversion plan(const ToPt& what, int threads) {
  return impl::guarded([&] {
    impl::FileOptions options = file_options(what, threads);
    return ConversionAccess::make(impl::plan_safetensors_to_pt(options));
  });
}

}  // namespace mckpt
