"""Functions that need a loop of their own per element: internal LLVM functions, called by lane.

They are exact and slow; nothing hot uses them.
"""

from __future__ import annotations

# Remainder with the dividend's sign. Both magnitudes become integers below 2^53 times a power of
# two; the difference of the exponents is worked off eleven bits at a time, each a remainder of a
# 64-bit integer.
FMOD = """define internal double @ixion.fmod(double %x, double %y) nounwind {
entry:
  %xb = bitcast double %x to i64
  %yb = bitcast double %y to i64
  %xm = and i64 %xb, 9223372036854775807
  %ym = and i64 %yb, 9223372036854775807
  %sign = and i64 %xb, -9223372036854775808
  %x_end = icmp uge i64 %xm, 9218868437227405312
  %y_nan = icmp ugt i64 %ym, 9218868437227405312
  %y_zero = icmp eq i64 %ym, 0
  %bad1 = or i1 %x_end, %y_nan
  %bad = or i1 %bad1, %y_zero
  br i1 %bad, label %undefined, label %defined
undefined:
  %xy = fmul double %x, %y
  %nan = fdiv double %xy, %xy
  ret double %nan
defined:
  %less = icmp ult i64 %xm, %ym
  br i1 %less, label %itself, label %start
itself:
  ret double %x
start:
  %xe0 = lshr i64 %xm, 52
  %ye0 = lshr i64 %ym, 52
  %xn = icmp ne i64 %xe0, 0
  %yn = icmp ne i64 %ye0, 0
  %xf = and i64 %xm, 4503599627370495
  %yf = and i64 %ym, 4503599627370495
  %xi = or i64 %xf, 4503599627370496
  %yi = or i64 %yf, 4503599627370496
  %a0 = select i1 %xn, i64 %xi, i64 %xf
  %b = select i1 %yn, i64 %yi, i64 %yf
  %xe = call i64 @llvm.umax.i64(i64 %xe0, i64 1)
  %ye = call i64 @llvm.umax.i64(i64 %ye0, i64 1)
  %steps0 = sub i64 %xe, %ye
  %a1 = urem i64 %a0, %b
  br label %round
round:
  %a = phi i64 [ %a1, %start ], [ %a2, %next ]
  %steps = phi i64 [ %steps0, %start ], [ %steps2, %next ]
  %more = icmp ne i64 %steps, 0
  br i1 %more, label %next, label %done
next:
  %now = call i64 @llvm.umin.i64(i64 %steps, i64 11)
  %shifted = shl i64 %a, %now
  %a2 = urem i64 %shifted, %b
  %steps2 = sub i64 %steps, %now
  br label %round
done:
  %none = icmp eq i64 %a, 0
  br i1 %none, label %zero, label %pack
zero:
  %z = bitcast i64 %sign to double
  ret double %z
pack:
  %room0 = call i64 @llvm.ctlz.i64(i64 %a, i1 true)
  %room = sub i64 %room0, 11
  %left = sub i64 %ye, 1
  %up = call i64 @llvm.umin.i64(i64 %room, i64 %left)
  %high = shl i64 %a, %up
  %e1 = sub i64 %ye, %up
  %e2 = sub i64 %e1, 1
  %e3 = shl i64 %e2, 52
  %r1 = add i64 %high, %e3
  %r2 = or i64 %r1, %sign
  %r = bitcast i64 %r2 to double
  ret double %r
}
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1 immarg)"""

# Integer power by squaring, modulo 2^64. A negative exponent leaves only powers of 1 and -1.
POWER = """define internal i64 @ixion.ipow(i64 %x, i64 %y) nounwind {
entry:
  %negative = icmp slt i64 %y, 0
  %odd_y = and i64 %y, 1
  %is_one = icmp eq i64 %x, 1
  %is_minus = icmp eq i64 %x, -1
  %minus = sub i64 1, %odd_y
  %minus2 = sub i64 %minus, %odd_y
  %from_minus = select i1 %is_minus, i64 %minus2, i64 0
  %inverse = select i1 %is_one, i64 1, i64 %from_minus
  br i1 %negative, label %out, label %round
round:
  %base = phi i64 [ %x, %entry ], [ %base2, %next ]
  %left = phi i64 [ %y, %entry ], [ %left2, %next ]
  %result = phi i64 [ 1, %entry ], [ %result2, %next ]
  %more = icmp ne i64 %left, 0
  br i1 %more, label %next, label %out
next:
  %bit = and i64 %left, 1
  %odd = icmp ne i64 %bit, 0
  %product = mul i64 %result, %base
  %result2 = select i1 %odd, i64 %product, i64 %result
  %base2 = mul i64 %base, %base
  %left2 = lshr i64 %left, 1
  br label %round
out:
  %answer = phi i64 [ %inverse, %entry ], [ %result, %round ]
  ret i64 %answer
}"""

FUNCTIONS = {"ixion.fmod": FMOD, "ixion.ipow": POWER}
