// As the command does it (tools/commands/plot.cc), without plans.
#include "mckpt/plot.h"

#include "api/boundary.h"
#include "api/public_notes.h"
#include "convert/asked/words.h"
#include "core/base/error.h"
#include "hf/quantized/dequantized_store.h"
#include "io/choice/tensor_choice.h"
#include "io/file/parallel.h"
#include "io/file/source_stamps.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "page/data/checkpoint_picture.h"
#include "page/html/pages.h"
#include "page/picture_file.h"
#include "page/svg/shard_map_svg.h"

namespace mckpt {

Plotted plot(const std::string& path, const std::string& output, const PlotOptions& options,
             Observer* observer) {
  return impl::guarded([&] {
    impl::check_threads(options.threads);
    impl::ObserverBridge bridge(observer);
    const bool page = impl::checkpoint_picture_form(output) == impl::PictureForm::kHtml;
    if (options.stats && !page)
      throw impl::Error(impl::Code::kUsage, "a drawing has no statistics of values")
          .expected("an output that ends in .html")
          .found(output);
    impl::check_picture_path(output);
    const impl::OpenOptions files = impl::opening_of(options.files, {{path}});
    const impl::TensorChoice choice = impl::choice_of(options.names, options.regex);
    const auto store = impl::open_store(path, files);
    impl::CheckpointPicture picture = impl::checkpoint_picture(*store, choice.choose(*store), path);
    picture.choice = options.names;
    if (options.stats) {
      const auto values = impl::open_values(path, files);
      impl::add_values(picture, *values, choice.choose(*values), options.threads, bridge);
    }
    impl::check_unchanged(files);
    const std::string text = page ? impl::checkpoint_page(picture) : impl::shard_map_svg(picture);
    impl::write_picture(output, text);
    return Plotted{.sound = impl::is_sound(*store) && picture.map.faulty_tensors == 0,
                   .bytes = std::ssize(text),
                   .tensors = picture.map.tensors,
                   .faulty_tensors = picture.map.faulty_tensors};
  });
}

}  // namespace mckpt
