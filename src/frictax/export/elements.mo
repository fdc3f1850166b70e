package Elements "Elements that mirror those of the Modelica Standard Library 4 in names, parameters and connectors, with frictax's additions"
  // A machine's text takes from here what it needs. Nothing below uses a library.

  connector Flange "End of something that slides"
    Real s(quantity="Length", unit="m") "Position";
    flow Real f(quantity="Force", unit="N") "Force into the element";
  end Flange;

  connector RotationalFlange "End of something that turns"
    Real phi(quantity="Angle", unit="rad") "Angle";
    flow Real tau(quantity="Torque", unit="N.m") "Torque into the element";
  end RotationalFlange;

  connector HeatPort "Where heat flows in or out"
    Real T(quantity="ThermodynamicTemperature", unit="K") "Temperature";
    flow Real Q_flow(quantity="Power", unit="W") "Heat into the element";
  end HeatPort;

  connector RealInput = input Real "A signal that comes in";

  connector RealOutput = output Real "A signal that goes out";

  function interpolate "Straight lines through the points of a table, the first and the last of them continued"
    input Real table[:, 2];
    input Real x;
    output Real y;
  algorithm
    y := table[1, 2];
    for i in 1:size(table, 1) - 1 loop
      if i == 1 or x > table[i, 1] then
        y := table[i, 2] + (x - table[i, 1])*(table[i + 1, 2] - table[i, 2])/(table[i + 1, 1] - table[i, 1]);
      end if;
    end for;
  end interpolate;

  function held "The value of the last point at or before x, of the first point before all"
    input Real table[:, 2];
    input Real x;
    output Real y;
  algorithm
    y := table[1, 2];
    for i in 1:size(table, 1) loop
      if x >= table[i, 1] then
        y := table[i, 2];
      end if;
    end for;
  end held;

  model Constant "A value that stays"
    parameter Real k;
    RealOutput y;
  equation
    y = k;
  end Constant;

  model Step "A value that jumps once"
    parameter Real height;
    parameter Real offset;
    parameter Real startTime(unit="s");
    RealOutput y;
  equation
    y = offset + (if time < startTime then 0 else height);
  end Step;

  model Ramp "A value that rises once"
    parameter Real height;
    parameter Real duration(unit="s");
    parameter Real offset;
    parameter Real startTime(unit="s");
    RealOutput y;
  equation
    y = offset + (if time < startTime then 0 else if time < startTime + duration then (time - startTime)*height/duration else height);
  end Ramp;

  model Sine "A wave"
    parameter Real amplitude;
    parameter Real f(unit="Hz");
    parameter Real phase(unit="rad");
    parameter Real offset;
    parameter Real startTime(unit="s");
    RealOutput y;
  equation
    y = offset + (if time < startTime then 0 else amplitude*sin(2*3.141592653589793*f*(time - startTime) + phase));
  end Sine;

  model Trapezoid "A trapezoid in every period"
    parameter Real amplitude;
    parameter Real rising(unit="s");
    parameter Real width(unit="s");
    parameter Real falling(unit="s");
    parameter Real period(unit="s");
    parameter Integer nperiod "-1 for ever";
    parameter Real offset;
    parameter Real startTime(unit="s");
    RealOutput y;
  protected
    Real count "Periods that have ended";
    Real since(unit="s") "Time since the period began";
  equation
    count = if time < startTime then 0 else floor((time - startTime)/period);
    since = time - startTime - count*period;
    y = offset + (if time < startTime or nperiod >= 0 and count >= nperiod then 0 else amplitude*(if since < rising then since/rising else if since < rising + width then 1 else if since < rising + width + falling then (rising + width + falling - since)/falling else 0));
  end Trapezoid;

  model Pulse "A pulse in every period"
    parameter Real amplitude;
    parameter Real width "In per cent of the period";
    parameter Real period(unit="s");
    parameter Integer nperiod "-1 for ever";
    parameter Real offset;
    parameter Real startTime(unit="s");
    RealOutput y;
  protected
    Real count "Periods that have ended";
    Real since(unit="s") "Time since the period began";
  equation
    count = if time < startTime then 0 else floor((time - startTime)/period);
    since = time - startTime - count*period;
    y = offset + (if time < startTime or nperiod >= 0 and count >= nperiod then 0 else if since < width/100*period then amplitude else 0);
  end Pulse;

  model Sampled "Points joined by straight lines; the first and the last hold"
    parameter Real table[:, 2];
    RealOutput y;
  equation
    y = interpolate(table, min(max(time, table[1, 1]), table[size(table, 1), 1]));
  end Sampled;

  model Held "Points, each held until the next"
    parameter Real table[:, 2];
    RealOutput y;
  equation
    y = held(table, time);
  end Held;

  model Mass "A sliding mass"
    parameter Real m(unit="kg");
    parameter Real L(unit="m") = 0;
    Flange flange_a;
    Flange flange_b;
    Real s(unit="m", start=0) "Position of the centre";
    Real v(unit="m/s", start=0);
    Real a(unit="m/s2");
  equation
    flange_a.s = s - L/2;
    flange_b.s = s + L/2;
    v = der(s);
    a = der(v);
    m*a = flange_a.f + flange_b.f;
  end Mass;

  model Inertia "A turning body"
    parameter Real J(unit="kg.m2");
    RotationalFlange flange_a;
    RotationalFlange flange_b;
    Real phi(unit="rad", start=0);
    Real w(unit="rad/s", start=0);
    Real a(unit="rad/s2");
  equation
    flange_a.phi = phi;
    flange_b.phi = phi;
    w = der(phi);
    a = der(w);
    J*a = flange_a.tau + flange_b.tau;
  end Inertia;

  model Fixed "The housing"
    parameter Real s0(unit="m") = 0;
    Flange flange;
  equation
    flange.s = s0;
  end Fixed;

  model RotationalFixed "The housing"
    parameter Real phi0(unit="rad") = 0;
    RotationalFlange flange;
  equation
    flange.phi = phi0;
  end RotationalFixed;

  model Rod "A length without mass"
    parameter Real L(unit="m");
    Flange flange_a;
    Flange flange_b;
  equation
    flange_b.s = flange_a.s + L;
    flange_a.f + flange_b.f = 0;
  end Rod;

  partial model Compliant "A force between two flanges"
    Flange flange_a;
    Flange flange_b;
    Real s_rel(unit="m");
    Real f(unit="N") "Pulls the flanges together";
  equation
    s_rel = flange_b.s - flange_a.s;
    flange_b.f = f;
    flange_a.f = -f;
  end Compliant;

  partial model RotationalCompliant "A torque between two flanges"
    RotationalFlange flange_a;
    RotationalFlange flange_b;
    Real phi_rel(unit="rad");
    Real tau(unit="N.m") "Turns the flanges together";
  equation
    phi_rel = flange_b.phi - flange_a.phi;
    flange_b.tau = tau;
    flange_a.tau = -tau;
  end RotationalCompliant;

  model Spring
    extends Compliant;
    parameter Real c(unit="N/m");
    parameter Real s_rel0(unit="m") = 0;
  equation
    f = c*(s_rel - s_rel0);
  end Spring;

  model Damper
    extends Compliant;
    parameter Real d(unit="N.s/m");
    Real v_rel(unit="m/s");
    Real lossPower(unit="W");
  equation
    v_rel = der(s_rel);
    f = d*v_rel;
    lossPower = f*v_rel;
  end Damper;

  model SpringDamper
    extends Compliant;
    parameter Real c(unit="N/m");
    parameter Real d(unit="N.s/m");
    parameter Real s_rel0(unit="m") = 0;
    Real v_rel(unit="m/s");
    Real lossPower(unit="W");
  equation
    v_rel = der(s_rel);
    f = c*(s_rel - s_rel0) + d*v_rel;
    lossPower = d*v_rel*v_rel;
  end SpringDamper;

  model RotationalSpring
    extends RotationalCompliant;
    parameter Real c(unit="N.m/rad");
    parameter Real phi_rel0(unit="rad") = 0;
  equation
    tau = c*(phi_rel - phi_rel0);
  end RotationalSpring;

  model RotationalDamper
    extends RotationalCompliant;
    parameter Real d(unit="N.m.s/rad");
    Real w_rel(unit="rad/s");
    Real lossPower(unit="W");
  equation
    w_rel = der(phi_rel);
    tau = d*w_rel;
    lossPower = tau*w_rel;
  end RotationalDamper;

  model RotationalSpringDamper
    extends RotationalCompliant;
    parameter Real c(unit="N.m/rad");
    parameter Real d(unit="N.m.s/rad");
    parameter Real phi_rel0(unit="rad") = 0;
    Real w_rel(unit="rad/s");
    Real lossPower(unit="W");
  equation
    w_rel = der(phi_rel);
    tau = c*(phi_rel - phi_rel0) + d*w_rel;
    lossPower = d*w_rel*w_rel;
  end RotationalSpringDamper;

  model ElastoGap "A spring and a damper that touch where s_rel < s_rel0, and never pull"
    extends Compliant;
    parameter Real c;
    parameter Real d(unit="N.s/m");
    parameter Real s_rel0(unit="m") = 0;
    parameter Real n = 1;
    Real v_rel(unit="m/s");
    Real f_c(unit="N") "Of the spring, <= 0";
    Real f_d(unit="N") "Of the damper, no larger";
    Real lossPower(unit="W");
  equation
    v_rel = der(s_rel);
    f_c = if s_rel < s_rel0 then -c*abs(s_rel - s_rel0)^n else 0;
    f_d = if s_rel < s_rel0 then min(max(d*v_rel, f_c), -f_c) else 0;
    f = f_c + f_d;
    lossPower = f_d*v_rel;
  end ElastoGap;

  model ElastoBacklash "A spring and a damper that touch where |phi_rel - phi_rel0| > b/2, and never pull; the damper is bounded by the spring"
    extends RotationalCompliant;
    parameter Real c(unit="N.m/rad");
    parameter Real d(unit="N.m.s/rad");
    parameter Real b(unit="rad") "The whole backlash";
    parameter Real phi_rel0(unit="rad") = 0;
    Real w_rel(unit="rad/s");
    Real deep(unit="rad") "Beyond the backlash, with a sign";
    Real tau_c(unit="N.m");
    Real tau_d(unit="N.m");
    Real lossPower(unit="W");
  equation
    w_rel = der(phi_rel);
    deep = if phi_rel - phi_rel0 > b/2 then phi_rel - phi_rel0 - b/2 else if phi_rel - phi_rel0 < -b/2 then phi_rel - phi_rel0 + b/2 else 0;
    tau_c = c*deep;
    tau_d = min(max(d*w_rel, -abs(tau_c)), abs(tau_c));
    tau = tau_c + tau_d;
    lossPower = tau_d*w_rel;
  end ElastoBacklash;

  model Force "A force from outside"
    RealInput f;
    Flange flange;
  equation
    flange.f = -f;
  end Force;

  model Torque "A torque from outside"
    RealInput tau;
    RotationalFlange flange;
  equation
    flange.tau = -tau;
  end Torque;

  model Position "A position over time"
    RealInput s_ref;
    Flange flange;
  equation
    flange.s = s_ref;
  end Position;

  model RotationalPosition "An angle over time"
    RealInput phi_ref;
    RotationalFlange flange;
  equation
    flange.phi = phi_ref;
  end RotationalPosition;

  model LinearPositionDependentForce "A force in a straight line over position"
    parameter Real f_nominal(unit="N");
    parameter Real slope(unit="N/m");
    parameter Real s0(unit="m");
    Flange flange;
  equation
    flange.f = -(f_nominal + slope*(flange.s - s0));
  end LinearPositionDependentForce;

  model RotationalLinearPositionDependentForce "A torque in a straight line over angle"
    parameter Real f_nominal(unit="N.m");
    parameter Real slope(unit="N.m/rad");
    parameter Real s0(unit="rad");
    RotationalFlange flange;
  equation
    flange.tau = -(f_nominal + slope*(flange.phi - s0));
  end RotationalLinearPositionDependentForce;

  model PeriodicPositionDependentForce "A force that repeats itself over position"
    constant Real pi = 3.141592653589793;
    parameter Real f_cos(unit="N");
    parameter Real f_sin(unit="N");
    parameter Real period(unit="m");
    parameter Real s0(unit="m") "Where the force is f_cos";
    Flange flange;
  equation
    flange.f = -(f_cos*cos(2*pi*(flange.s - s0)/period) + f_sin*sin(2*pi*(flange.s - s0)/period));
  end PeriodicPositionDependentForce;

  model RotationalPeriodicPositionDependentForce "A torque that repeats itself over angle"
    constant Real pi = 3.141592653589793;
    parameter Real f_cos(unit="N.m");
    parameter Real f_sin(unit="N.m");
    parameter Real period(unit="rad");
    parameter Real s0(unit="rad") "Where the torque is f_cos";
    RotationalFlange flange;
  equation
    flange.tau = -(f_cos*cos(2*pi*(flange.phi - s0)/period) + f_sin*sin(2*pi*(flange.phi - s0)/period));
  end RotationalPeriodicPositionDependentForce;

  model QuadraticSpeedDependentForce "A force over the square of the speed, along it or against it"
    parameter Real f_nominal(unit="N") "At v_nominal; < 0: drag";
    parameter Real v_nominal(unit="m/s");
    Flange flange;
    Real v(unit="m/s");
  equation
    v = der(flange.s);
    flange.f = -f_nominal*(v/v_nominal)*abs(v/v_nominal);
  end QuadraticSpeedDependentForce;

  model QuadraticSpeedDependentTorque "A torque over the square of the speed, along it or against it"
    parameter Real tau_nominal(unit="N.m") "At w_nominal; < 0: drag";
    parameter Real w_nominal(unit="rad/s");
    RotationalFlange flange;
    Real w(unit="rad/s");
  equation
    w = der(flange.phi);
    flange.tau = -tau_nominal*(w/w_nominal)*abs(w/w_nominal);
  end QuadraticSpeedDependentTorque;

  model PositionController "A speed loop inside a position loop"
    parameter Real kp(unit="1/s");
    parameter Real kv(unit="N.s/m");
    parameter Real k;
    RealInput s_ref;
    Flange flange;
    Real v(unit="m/s");
  equation
    v = der(flange.s);
    flange.f = -k*kv*(kp*(s_ref - flange.s) - v);
  end PositionController;

  model RotationalPositionController "A speed loop inside a loop of the angle"
    parameter Real kp(unit="1/s");
    parameter Real kv(unit="N.m.s/rad");
    parameter Real k;
    RealInput s_ref;
    RotationalFlange flange;
    Real w(unit="rad/s");
  equation
    w = der(flange.phi);
    flange.tau = -k*kv*(kp*(s_ref - flange.phi) - w);
  end RotationalPositionController;

  partial model Friction "Stuck, sliding or free: the curve parameter sa and the mode, after Otter, Elmqvist, Mattsson 1999, each direction with its own limits"
    parameter Real v_small = 1e10 "A jump of the velocity beyond it, to the other direction, goes on sliding; give 1e-3 where velocities jump";
    Real v_relfric "Velocity between the surfaces";
    Real a_relfric "Its rate";
    Real f0_forward "Sliding friction at rest";
    Real f0_backward;
    Real f0_max_forward "What breaks it away";
    Real f0_max_backward;
    Boolean free "Whether nothing presses it on";
    Real sa "Along the curve of friction over velocity; stuck, the force";
    Boolean startForward(start=false, fixed=true);
    Boolean startBackward(start=false, fixed=true);
    Boolean locked(start=false);
    Integer mode(start=3, fixed=true) "-1 backward, 0 stuck, 1 forward, 2 free, 3 not known";
  equation
    startForward = pre(mode) == 0 and (sa > f0_max_forward or pre(startForward) and sa > f0_forward) or pre(mode) == -1 and v_relfric > v_small or initial() and v_relfric > 0;
    startBackward = pre(mode) == 0 and (sa < -f0_max_backward or pre(startBackward) and sa < -f0_backward) or pre(mode) == 1 and v_relfric < -v_small or initial() and v_relfric < 0;
    locked = not free and not (pre(mode) == 1 or startForward or pre(mode) == -1 or startBackward);
    a_relfric = if locked then 0 else if free then sa else if startForward then sa - f0_max_forward else if startBackward then sa + f0_max_backward else if pre(mode) == 1 then sa - f0_max_forward else sa + f0_max_backward;
    mode = if free then 2 else if (pre(mode) == 1 or pre(mode) == 2 or startForward) and v_relfric > 0 then 1 else if (pre(mode) == -1 or pre(mode) == 2 or startBackward) and v_relfric < 0 then -1 else 0;
  end Friction;

  partial model FrictionByTable "The force of sliding by a table for each direction, times what presses it on"
    extends Friction;
    parameter Real forward[:, 2] "Speed >= 0 and force or coefficient";
    parameter Real backward[:, 2] "The same of motion backward, over speed >= 0";
    parameter Real peak = 1 "Breakaway over sliding friction at rest";
    Real scale "Force over table";
    Real friction "Opposes motion forward";
    Real lossPower(unit="W");
  equation
    f0_forward = scale*interpolate(forward, 0);
    f0_backward = scale*interpolate(backward, 0);
    f0_max_forward = peak*f0_forward;
    f0_max_backward = peak*f0_backward;
    friction = if locked then sa else if free then 0 else if startForward then scale*interpolate(forward, v_relfric) else if startBackward then -scale*interpolate(backward, -v_relfric) else if pre(mode) == 1 then scale*interpolate(forward, v_relfric) else -scale*interpolate(backward, -v_relfric);
    lossPower = friction*v_relfric;
  end FrictionByTable;

  partial model FrictionOnSupport "Between a flange and its support"
    extends FrictionByTable;
    Flange flange_b;
    Flange support "Connect it with the housing or a body";
  equation
    v_relfric = der(flange_b.s) - der(support.s);
    a_relfric = der(v_relfric);
    flange_b.f = friction;
    support.f = -friction;
  end FrictionOnSupport;

  partial model RotationalFrictionOnSupport "Between a flange that turns and its support"
    extends FrictionByTable;
    RotationalFlange flange_b;
    RotationalFlange support "Connect it with the housing or a body";
  equation
    v_relfric = der(flange_b.phi) - der(support.phi);
    a_relfric = der(v_relfric);
    flange_b.tau = friction;
    support.tau = -friction;
  end RotationalFrictionOnSupport;

  model SupportFriction "A body on its guide"
    parameter Real f_pos[:, 2];
    parameter Real f_neg[:, 2] = f_pos;
    extends FrictionOnSupport(forward=f_pos, backward=f_neg);
  equation
    scale = 1;
    free = false;
  end SupportFriction;

  model BearingFriction "A shaft in its bearings"
    parameter Real tau_pos[:, 2];
    parameter Real tau_neg[:, 2] = tau_pos;
    extends RotationalFrictionOnSupport(forward=tau_pos, backward=tau_neg);
  equation
    scale = 1;
    free = false;
  end BearingFriction;

  partial model BristleFriction "An elastic film between two faces, which bends before they slide"
    parameter Real forward[:, 2] "Speed >= 0 and what bends it: the force of sliding but for its viscous part";
    parameter Real backward[:, 2] "The same of motion backward, over speed >= 0";
    parameter Real viscous_forward "Slope of the viscous part";
    parameter Real viscous_backward;
    parameter Real sigma_0 "Stiffness";
    parameter Real sigma_1 "Damping by the rate of the deflection";
    parameter Real fading_forward "One over the speed over which the damping fades";
    parameter Real fading_backward;
    parameter Real z_start "How far it is bent at the start";
    Real v_relfric "Velocity between the surfaces";
    Real f_z(start=sigma_0*z_start, fixed=true) "Force in the film";
    Real g "Its limit at this speed";
    Real r "The force in the direction of motion, over the limit";
    Real bends "Its slope over the way, in sigma_0: 1 for a spring, 0 where it slides";
    Real friction "Opposes motion forward";
    Real lossPower(unit="W");
  equation
    g = noEvent(if v_relfric < 0 then interpolate(backward, -v_relfric) else interpolate(forward, v_relfric));
    r = noEvent(if v_relfric < 0 then -f_z/g else f_z/g);
    der(f_z) = sigma_0*v_relfric*bends;
    friction = f_z + sigma_1*exp(-(v_relfric*noEvent(if v_relfric < 0 then fading_backward else fading_forward))^2)*v_relfric*bends + noEvent(if v_relfric < 0 then viscous_backward else viscous_forward)*v_relfric;
    lossPower = friction*v_relfric - f_z*v_relfric*bends;
  end BristleFriction;

  partial model BristleOnSupport "Between a flange and its support"
    extends BristleFriction;
    Flange flange_b;
    Flange support "Connect it with the housing or a body";
  equation
    v_relfric = der(flange_b.s) - der(support.s);
    flange_b.f = friction;
    support.f = -friction;
  end BristleOnSupport;

  partial model RotationalBristleOnSupport "Between a flange that turns and its support"
    extends BristleFriction;
    RotationalFlange flange_b;
    RotationalFlange support "Connect it with the housing or a body";
  equation
    v_relfric = der(flange_b.phi) - der(support.phi);
    flange_b.tau = friction;
    support.tau = -friction;
  end RotationalBristleOnSupport;

  model LuGreFriction "A body on its guide, after Canudas de Wit, Olsson, Astrom, Lischinsky 1995"
    extends BristleOnSupport;
  equation
    bends = 1 - r;
  end LuGreFriction;

  model RotationalLuGreFriction "A shaft in its bearings, after Canudas de Wit, Olsson, Astrom, Lischinsky 1995"
    extends RotationalBristleOnSupport;
  equation
    bends = 1 - r;
  end RotationalLuGreFriction;

  model ElastoPlasticFriction "A body on its guide, after Dupont, Hayward, Armstrong, Altpeter 2002"
    extends BristleOnSupport;
    parameter Real least_forward "The least limit, of which z_ba is a share";
    parameter Real least_backward;
    parameter Real z_ba "Up to which it is a spring";
  protected
    Real b "The same, over the limit";
  equation
    b = min(z_ba*noEvent(if v_relfric < 0 then least_backward else least_forward)/g, 0.999);
    bends = 1 - 0.5*(1 - cos(3.141592653589793*min(max((r - b)/(1 - b), 0), 1)))*r;
  end ElastoPlasticFriction;

  model RotationalElastoPlasticFriction "A shaft in its bearings, after Dupont, Hayward, Armstrong, Altpeter 2002"
    extends RotationalBristleOnSupport;
    parameter Real least_forward "The least limit, of which z_ba is a share";
    parameter Real least_backward;
    parameter Real z_ba "Up to which it is a spring";
  protected
    Real b "The same, over the limit";
  equation
    b = min(z_ba*noEvent(if v_relfric < 0 then least_backward else least_forward)/g, 0.999);
    bends = 1 - 0.5*(1 - cos(3.141592653589793*min(max((r - b)/(1 - b), 0), 1)))*r;
  end RotationalElastoPlasticFriction;

  model Brake "A brake that a normal force presses on"
    parameter Real mu_pos[:, 2];
    parameter Real mu_neg[:, 2] = mu_pos;
    extends FrictionOnSupport(forward=mu_pos, backward=mu_neg);
    parameter Real cgeo = 1;
    parameter Real fn_max(unit="N");
    RealInput f_normalized;
    Real fn(unit="N");
  equation
    fn = fn_max*f_normalized;
    free = fn <= 0;
    scale = cgeo*fn;
  end Brake;

  model RotationalBrake "A brake that a normal force presses on"
    parameter Real mu_pos[:, 2];
    parameter Real mu_neg[:, 2] = mu_pos;
    extends RotationalFrictionOnSupport(forward=mu_pos, backward=mu_neg);
    parameter Real cgeo(unit="m") = 1;
    parameter Real fn_max(unit="N");
    RealInput f_normalized;
    Real fn(unit="N");
  equation
    fn = fn_max*f_normalized;
    free = fn <= 0;
    scale = cgeo*fn;
  end RotationalBrake;

  model Clutch "Friction between two turning bodies that a normal force presses together"
    parameter Real mu_pos[:, 2];
    parameter Real mu_neg[:, 2] = mu_pos;
    extends FrictionByTable(forward=mu_pos, backward=mu_neg);
    parameter Real cgeo(unit="m") = 1;
    parameter Real fn_max(unit="N");
    RealInput f_normalized;
    RotationalFlange flange_a;
    RotationalFlange flange_b;
    Real fn(unit="N");
  equation
    v_relfric = der(flange_b.phi) - der(flange_a.phi);
    a_relfric = der(v_relfric);
    flange_b.tau = friction;
    flange_a.tau = -friction;
    fn = fn_max*f_normalized;
    free = fn <= 0;
    scale = cgeo*fn;
  end Clutch;

  model OneWayClutch "A clutch with a freewheel: flange_b turns faster than flange_a, never slower"
    parameter Real mu_pos[:, 2];
    parameter Real peak = 1;
    parameter Real cgeo(unit="m") = 1;
    parameter Real fn_max(unit="N");
    RealInput f_normalized;
    RotationalFlange flange_a;
    RotationalFlange flange_b;
    Real w_rel(unit="rad/s");
    Real a_rel(unit="rad/s2");
    Real fn(unit="N");
    Real tau0(unit="N.m");
    Real tau0_max(unit="N.m");
    Real tau(unit="N.m");
    Real sa;
    Boolean startForward(start=false, fixed=true);
    Boolean stuck(start=false, fixed=true);
    Boolean locked(start=false);
    Real lossPower(unit="W");
  equation
    w_rel = der(flange_b.phi) - der(flange_a.phi);
    a_rel = der(w_rel);
    flange_b.tau = tau;
    flange_a.tau = -tau;
    fn = if f_normalized <= 0 then 0 else fn_max*f_normalized;
    tau0 = interpolate(mu_pos, 0)*cgeo*fn;
    tau0_max = max(max(peak, 1.0001)*tau0, 1e-4*interpolate(mu_pos, 0)*cgeo*fn_max);
    startForward = pre(stuck) and (sa > tau0_max or pre(startForward) and sa > tau0) or initial() and w_rel > 0;
    locked = pre(stuck) and not startForward;
    a_rel = if locked then 0 else sa - tau0;
    tau = if locked then sa else interpolate(mu_pos, w_rel)*cgeo*fn;
    stuck = locked or w_rel <= 0;
    lossPower = if stuck then 0 else tau*w_rel;
  end OneWayClutch;

  partial model MassWithStop "A sliding mass between two hard stops"
    parameter Real m(unit="kg");
    parameter Real L(unit="m") = 0;
    parameter Real smin(unit="m");
    parameter Real smax(unit="m");
    constant Real peak = 1.001 "Breakaway over sliding friction at rest";
    Flange flange_a;
    Flange flange_b;
    Real s(unit="m", start=0) "Position of the centre";
    Real v(unit="m/s", start=0);
    Real a(unit="m/s2");
    Real f(unit="N") "Friction; at a stop its reaction as well";
    Real f0_forward(unit="N");
    Real f0_backward(unit="N");
    Real forward(unit="N") "Friction of sliding forward";
    Real backward(unit="N") "Friction of sliding backward";
    Boolean free;
    Real sa;
    Boolean startForward(start=false, fixed=true);
    Boolean startBackward(start=false, fixed=true);
    Boolean locked(start=false);
    Integer mode(start=3, fixed=true);
    Boolean atLower;
    Boolean atUpper;
    Real lossPower(unit="W");
  equation
    flange_a.s = s - L/2;
    flange_b.s = s + L/2;
    v = der(s);
    a = der(v);
    m*a = flange_a.f + flange_b.f - f;
    atLower = s <= smin + L/2;
    atUpper = s >= smax - L/2;
    startForward = not atUpper and (pre(mode) == 0 and (sa > peak*f0_forward or pre(startForward) and sa > f0_forward)) or initial() and v > 0;
    startBackward = not atLower and (pre(mode) == 0 and (sa < -peak*f0_backward or pre(startBackward) and sa < -f0_backward)) or initial() and v < 0;
    locked = not free and not (pre(mode) == 1 or startForward or pre(mode) == -1 or startBackward);
    a = if locked then 0 else if free then sa else if startForward or pre(mode) == 1 and not startBackward then sa - peak*f0_forward else sa + peak*f0_backward;
    f = if locked then sa else if free then 0 else if startForward or pre(mode) == 1 and not startBackward then forward else -backward;
    mode = if free then 2 else if (pre(mode) == 1 or pre(mode) == 2 or startForward) and v > 0 and not atUpper then 1 else if (pre(mode) == -1 or pre(mode) == 2 or startBackward) and v < 0 and not atLower then -1 else 0;
    lossPower = f*v;
    when atLower or atUpper then
      reinit(s, if s <= smin + L/2 then smin + L/2 else smax - L/2);
      reinit(v, 0);
    end when;
  end MassWithStop;

  model MassWithStopAndFriction "A sliding mass with Stribeck friction between two hard stops"
    extends MassWithStop;
    parameter Real F_prop(unit="N.s/m");
    parameter Real F_Coulomb(unit="N");
    parameter Real F_Stribeck(unit="N");
    parameter Real fexp(unit="s/m");
  equation
    f0_forward = F_Coulomb + F_Stribeck;
    f0_backward = f0_forward;
    forward = F_Coulomb + F_prop*v + F_Stribeck*exp(-fexp*v);
    backward = F_Coulomb - F_prop*v + F_Stribeck*exp(fexp*v);
    free = f0_forward <= 0 and F_prop <= 0 and s > smin + L/2 and s < smax - L/2;
  end MassWithStopAndFriction;

  model MassWithStopAndDirectionalFriction "The same with a law of its own for motion backward"
    extends MassWithStop;
    parameter Real F_prop(unit="N.s/m");
    parameter Real F_Coulomb(unit="N");
    parameter Real F_Stribeck(unit="N");
    parameter Real fexp(unit="s/m");
    parameter Real f_neg[:, 2];
  equation
    f0_forward = F_Coulomb + F_Stribeck;
    f0_backward = interpolate(f_neg, 0);
    forward = F_Coulomb + F_prop*v + F_Stribeck*exp(-fexp*v);
    backward = interpolate(f_neg, -v);
    free = false;
  end MassWithStopAndDirectionalFriction;

  model IdealGear "A gear without losses"
    parameter Real ratio "phi_a/phi_b";
    RotationalFlange flange_a;
    RotationalFlange flange_b;
  equation
    flange_a.phi = ratio*flange_b.phi;
    0 = ratio*flange_a.tau + flange_b.tau;
  end IdealGear;

  model IdealPlanetary "A planetary gear without losses"
    parameter Real ratio "Teeth of the ring over teeth of the sun";
    RotationalFlange sun;
    RotationalFlange carrier;
    RotationalFlange ring;
  equation
    (1 + ratio)*carrier.phi = sun.phi + ratio*ring.phi;
    ring.tau = ratio*sun.tau;
    carrier.tau = -(1 + ratio)*sun.tau;
  end IdealPlanetary;

  model HeatCapacitor "A body of one temperature"
    parameter Real C(unit="J/K");
    Real T(unit="K", start=293.15);
    HeatPort port;
  equation
    T = port.T;
    C*der(T) = port.Q_flow;
  end HeatCapacitor;

  model ThermalConductor "What heat flows through"
    parameter Real G(unit="W/K");
    HeatPort port_a;
    HeatPort port_b;
  equation
    port_a.Q_flow = G*(port_a.T - port_b.T);
    port_a.Q_flow + port_b.Q_flow = 0;
  end ThermalConductor;

  model FixedTemperature "The surroundings"
    parameter Real T(unit="K");
    HeatPort port;
  equation
    port.T = T;
  end FixedTemperature;

  model PrescribedHeatFlow "Heat from outside"
    RealInput Q_flow;
    HeatPort port;
  equation
    port.Q_flow = -Q_flow;
  end PrescribedHeatFlow;
end Elements;
