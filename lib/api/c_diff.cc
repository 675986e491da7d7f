// Differences of the C interface: a Diff behind a handle.
#include "mckpt/c_diff.h"

#include "api/c_call.h"
#include "api/public_json.h"
#include "api/settings.h"

struct mckpt_difference {
  mckpt::Diff diff;
};

mckpt_difference* mckpt_diff(const char* a, const char* b, const char* const* settings,
                             const mckpt_observer* observer, mckpt_error** error) {
  return mckpt::impl::c_result(error, static_cast<mckpt_difference*>(nullptr), [&] {
    mckpt::impl::Settings s(settings);
    mckpt::DiffOptions options;
    read(s, options);
    s.refuse_rest();
    mckpt::impl::CObserver to(observer);
    return new mckpt_difference{mckpt::diff(mckpt::impl::c_given(a, "first path"),
                                            mckpt::impl::c_given(b, "second path"), options, &to)};
  });
}

void mckpt_diff_free(mckpt_difference* d) { delete d; }

int mckpt_diff_equal(const mckpt_difference* d) { return d->diff.equal; }
int64_t mckpt_diff_row_count(const mckpt_difference* d) { return std::ssize(d->diff.rows); }

mckpt_diff_row mckpt_diff_row_at(const mckpt_difference* d, int64_t number) {
  const mckpt::DiffRow& r = d->diff.rows[number];
  return {r.kind.c_str(), r.name.c_str(), r.at.c_str(),          r.a.c_str(),
          r.b.c_str(),    r.items,        r.largest.value_or(-1)};
}

char* mckpt_diff_json(const mckpt_difference* d, mckpt_error** error) {
  return mckpt::impl::c_written(error, [&](std::string& to) { mckpt::impl::write_json(to, d->diff); });
}
