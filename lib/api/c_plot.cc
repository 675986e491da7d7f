// Pictures of the C interface.
#include "mckpt/c_plot.h"

#include "api/c_call.h"
#include "api/settings.h"

int mckpt_plot(const char* path, const char* output, const char* const* settings,
               const mckpt_observer* observer, mckpt_plotted* to, mckpt_error** error) {
  return mckpt::impl::c_status(error, [&] {
    mckpt::impl::Settings s(settings);
    mckpt::PlotOptions options;
    read(s, options);
    s.refuse_rest();
    mckpt::impl::CObserver watched(observer);
    const mckpt::Plotted made = mckpt::plot(mckpt::impl::c_given(path, "path"),
                                            mckpt::impl::c_given(output, "output"), options, &watched);
    if (to) *to = {made.sound, made.bytes, made.tensors, made.faulty_tensors};
  });
}
