"""Hand-written cases of identifiers and of look-alikes. Braces mark what must be found, exactly."""

from __future__ import annotations

FOUND = {
    "DATE": """
        Seen {3/4/1998} in clinic.
        Seen {03/04/98} in clinic.
        Admitted {12-25-2011} at night.
        Admitted {25.12.2011} at night.
        Adm {2011-12-25} via ED.
        Stamp {2011-12-25}T10:30:00Z ok.
        Filed {2011/12/25} today.
        DOB {19620314} on file.
        On {March 4, 1998} he came.
        On {March 4th, 1998} he came.
        On {Mar. 4, 1998} he came.
        On {mar 4 1998} he came.
        Born {4 March 1998} at home.
        Born {4 March 98} at home.
        Began {11 Feb} 19:15, clear.
        Seen {15 Jan}, 11:00 sharp.
        Open {22 May}, 12 hours a week.
        Held {Thursday 20 March}, 09:30 am.
        Born {4-Mar-1998} at home.
        Born {04-MAR-98} at home.
        Born {04MAR1998} at home.
        Due {May 5} then.
        On the {5th of May} she fell.
        Seen {Monday, June 11, 2083} again.
        Seen {Fri 6/18/04} again.
        Her note of {Thursday the 1st} was read.
        {June 3-5, 2012} admission.
        {June 3 to July 5, 2012} stay.
        In {March 2010} it began.
        In {Mar '10} it began.
        In {March of 2010} it began.
        Since {3/2010} unchanged.
        Since {10/2009} unchanged.
        MRI on {4/12} was normal.
        Last filled {7/31}.
        Visit on {12/1} noted.
        Stay {3/4-3/9} uneventful.
        On {Tuesday} he was better.
        Next visit {Wednesday}.
        Off {Mondays}.
        In {1998} he moved.
        Since {2011} he smokes.
        Between 3 and {2015}.
        From {1998-2003} in Ohio state service.
        Surgery in {'98}.
        In the {1990s} he drank.
        In {summer 2004} he fell.
        In {fall of 2004} he fell.
        Around {Christmas} she was ill.
        After {Thanksgiving} she left.
        On {Memorial Day} he fell.
        Return in {January}.
        Last {September} it began.
        since {Feb}
        Seen on the {12th} with cough.
        by the {3rd} at latest
        Hysterectomy, {1996}.
        Last pap smear: {2019}.
        Q3: {Q3 2019} revenue.
        Dated {1/2/03}.
        (Biopsy {2/3/2004})
        Comparison: {10 Apr 2012}.
        {12/03}: called, no answer.
        Appointment {Thu 3/9} at ten.
        It was {New Year's Eve}.
        Sent {31/12/2019}.
        Sent {31/02/1998}.
        Labs {2/3/04} fine.
        {April 2, 2015} note
        Operated {Sept 9th, 2001}.
    """,
    "AGE": """
        Will be {90} in December.
        At {twenty-eight} he is still active.
        FHx: brother {57} w/ cancer, sister {38} well.
        DOB 02/29/72 ({14}) on file.
        Age/Gender: {45} y
        age/gender.............. {19}
        Age (Years): {23} years
        He is aged {forty-three} now.
        A {60}yo man with Stage II disease, Crohn Disease, who
        Mother died at {72} of a stroke.
        A {45}-year-old man.
        A {45} year old man.
        A {45} y.o. man.
        A {45}yo M.
        A {45} y/o woman.
        Age: {93}
        At age {93} she died.
        aged {67}, lives alone
        A {102}-year-old lady.
        {57}M with chest pain.
        {57}F presents with cough.
        This {64} woman was seen.
        in his {80s} now
        in her early {nineties}
        A {forty-five}-year-old man.
        A {six} year old boy.
        {95} years of age
        A {7}-month-old girl.
        {3} weeks old infant
        Mother died at {91}.
        History: {43} man with stiffness.
        She turned {90} in hospital.
        Age/Sex: {57} / F
        She is {88} yrs old.
    """,
    "PHONE": """
        Call {617-555-1234} today.
        Call {(617) 555-1234} today.
        Call {(617)555-1234} today.
        Call {617.555.1234} today.
        Call {617 555 1234} today.
        Call {1-617-555-1234} today.
        Call {+1 617 555 1234} today.
        Tel {617/555-1234} day.
        Phone: {6175551234}
        Phone {555-1234}
        Cell: {555-1234 x12}
        Call {617-555-1234 ext. 55} today.
        pager {12345}
        Pager #{4321}
        beeper: {55123}
        Ext. {4567}
        call {x45678} please
        Tel: {020 7946 0958}
        Reach me at {+44 20 7946 0958} please.
        Mobile {07700 900123}
        ({+1-203-305-2492x5662})
        office {0650 995 04 94}
        {(84) 7564-8830} office
        Phone number is {617-555-9876}.
        He can be reached at {555-9876}.
        Page Wray at {7430} if worse.
    """,
    "FAX": """
        Fax: {617-555-1234}
        fax {(617) 555-1234}
        F: {617-555-1234}
        Telefax: {555-1234}
    """,
    "EMAIL": """
        Write to {ada.penn@example.org} please.
        {a_b+c@mail.example.co.uk}
        E-mail: {josé@example.com}.
        <{penn77@quickmail.net}>
    """,
    "URL": """
        See {https://www.example.org/a?b=1}.
        See {http://example.org/x} now.
        ({www.example.com})
        Visit {myclinic.org} for forms.
        at {portal.myclinic.com/login} today
        {ftp://files.example.org/a.txt}
    """,
    "IPADDR": """
        From {192.168.10.14} at night.
        IP {10.0.12.200}
        host {2001:db8:85a3:0:0:8a2e:370:7334} up
        host {fe80::1ff:fe23:4567:890a} up
    """,
    "SSN": """
        SSN: {123-45-6789}
        SSN {123456789}
        social security number {123-45-6789}
        soc sec # {123 45 6789}
        ({123-45-6789})
        SSN ending in {6789}
    """,
    "MEDICALRECORD": """
        MRN: {1234567}
        MRN {12-34-56}
        MRN#{A123456}
        Medical Record #{2675612}
        Medical record number: {123-45-67}
        Med Rec No. {778899}
        Unit No: {1234567}
        UNIT NUMBER: {725-06-54}
        Chart # {445566}
        Patient ID: {AB-998877}
        Hospital number {H445566}
        MR# {00123456}
        record no. - {5566778}
        Pt ID {998877}
        Thank you for referring her ({750-75-81}) to us.
    """,
    "ACCOUNT": """
        Acct: {1234567890}
        ACCT {V00012345678}
        Account number: {4455-6677-88}
        Acct # {99887766}
        Card {4111 1111 1111 1111}
        IBAN {GB82 WEST 1234 5698 7654 32}
    """,
    "HEALTHPLAN": """
        Member ID: {XYZ123456789}
        Policy # {P-445566}
        Medicare #{1EG4TE5MK72}
        Insurance ID {W123456789}
        Group No: {77889}
        Subscriber number {A11223344}
    """,
    "LICENSE": """
        DEA {AB1234563}
        DEA# {BP1234567}
        NPI: {1234567893}
        License no. {MD44556}
        Driver's license {D1234567}
        Lic # {A556677}
    """,
    "VEHICLE": """
        VIN {1HGCM82633A004352}
        plate {ABC1234}
        License plate: {7XYZ123}
    """,
    "DEVICE": """
        Serial number {SN-4455667}
        S/N: {AB12345678}
        Pacemaker serial no. {PJN123456H}
        Device ID: {D-778899}
        MAC {00:1A:2B:3C:4D:5E}
        Lot # {L445566}
    """,
    "IDNUM": """
        Accession {CT96-05845} was reviewed.
        Specimen {S12-34567}
        Case number: {2012-334455}
        Order # {44556677}
        Claim no. {C-778899}
        Prior study {RAD12345678} seen.
        Passport {X1234567}
        Encounter: {100200300}
        Job: {445566}
    """,
    "ZIP": """
        Boston, MA {02139}
        Zip code {02139-4307}
        ZIP: {02139}
        {90210-1234} is hers
        London {SW1A 2AA} office
        Toronto {K1A 0B1} mail
    """,
    "STREET": """
        Lives at {12 Maple Street}.
        Lives at {12 N. Maple Ave, Apt 3B}.
        {8887 Kings Road}, Yonkers
        {6587 2nd Street}
        {1 Old Mill Lane} is home.
        {P.O. Box 1234}
        {PO Box 77}
        {45 West 21st Street #4}
        {1200 Elm Blvd}
        Sent to {99 Harbor View Drive, Suite 200}.
        fell on {Maple Avenue} today
        {RR 2 Box 152}
        {Rural Route 7}
    """,
    "CITY": """
        {Boston}, MA 02139
        {Springfield}, IL is home.
        Lives in {Yonkers} alone.
        She is from {San Antonio}, TX.
        moved to {Brightboro} in May
        She lives in {Lake Brookridge}.
        Born in {Albuquerque}.
        City: {Toledo}
        works as a baker in {Tiburon}
    """,
    "STATE": """
        Boston, {MA} 02139
        Springfield, {IL} is home.
        He moved to {Ohio} last year.
        from {New Jersey}
        State: {TX}
        drove to {Massachusetts}
    """,
    "COUNTRY": """
        moved here from {Portugal}
        a trip to {Japan}
        born in {Kenya}
        visiting {Mexico} soon
    """,
    "ROOM": """
        Room {412}
        in bed {12B} now
        Rm. {7-2} please
        Bed {3}
    """,
    "DEPARTMENT": """
        DEPT: {4 West}
        Department: {Infusion Suite B}
        moved to {7 South} today
        {Department of Surgery} notes
    """,
    "HOSPITAL": """
        at {Massachusetts General Hospital} today
        {St. Jude Medical Center}
        from {Keokuk Community Clinic}, then
        {University Hospital of Brightboro}
        Seen at {St. Vincent's} once.
        treated at {Cedar Crest} on arrival
        at {Kozak Memorial Hospital}.
        {Pineboro Cancer Institute}
        the {Cleveland Clinic}
        to {Mount Sinai}
        {Harpfield Nursing Home} resident
    """,
    "ORGANIZATION": """
        He worked for {Wayland Industries}.
        a student at {Oakridge High School}
        the {University of Oregon} team
        employed by {Brookmont Motors}
    """,
    "DOCTOR": """
        **Staff:** {Orange, Napoleon C}
        Loc:451 Phys:{Ball}
        Staff                 : {Ball}
        **Radiologist:** {Kerrigan Vosk}
        Onc - {Dejesus}; more to come.
        Appreciate {Milnewick} recs
        Letter to {Okonkwo} sent.
        A copy goes to {F. Fine} (234-9973).
        Dr. {Penn} agrees.
        Dr {Ada Penn} agrees.
        Drs. {Lowe} said so.
        Seen by {Ada Penn}, MD.
        {Ada M. Penn}, M.D.
        {Ada Penn} RN
        {Penn, Ada}, MD
        Attending: {Ada Penn}
        PCP: {B. Wahl}
        Electronically signed by {Minerva Jeffrey}, M.D.
        Dictated by: {Ada Penn}
        cc: {Okonkwo}
        Provider: {Okonkwo, Ada}
        seen by {Okonkwo} today
        discussed with {Venegas} at noon
        d/w {Venegas}
        Dear Dr. {Greenwood},
        Dr. {O'Brien} came.
        Dr. {van der Berg} came.
        Dr. {Smith-Jones} came.
        Nurse {Okonkwo} came.
        Dr. {Foley} came.
        Referring Physician: {Karla Haugen}
        Dr. {Penn}'s note
    """,
    "PATIENT": """
        **PATIENT NAME:** {Ash, Victor}
        Baby {Okonkwo} doing well.
        {Carrasquillo} paged twice.
        Mr. {Okonkwo} came.
        Mrs. {Parkinson} came.
        Ms {Lopez} came.
        Miss {Ada Penn} came.
        Patient: {John Smith}
        PATIENT NAME: {SMITH, JOHN}
        Name: {Okonkwo, Ada B.}
        Pt: {Ada Okonkwo}
        RE: {Mae Fields}
        {Robert Miller} called.
        seen was {Anna S.}, who
        Care of a 70-year-old male, {Jorun N.}, who has pain.
        A 55-year-old man with asthma, {Oriel Dahlqvist}, was seen.
        refer to the notes of {Jorunn K.}, seen today
        Patient Name - {Ada Okonkwo}
        Mr. {Wells} came.
        Ms. {Down} came.
        {Garcia, Maria} was there.
    """,
    "FAMILY": """
        Next of kin is {Kellar, Walter C}, by phone.
        - {Okonkwo} family present.
        his wife {Mary} helps
        Her son, {Tadhg Grant}, drove.
        Next of kin: {Ada Okonkwo}
        Emergency contact: {Karla Haugen}
        married to {Harriett}
        daughter {Ada}
    """,
    "PROFESSION": """
        He was a {bus driver} then.
        soc: {insurance agent}. 6 kids.
        71 y/o {school superintendent} from afar
        He works in {the airline industry}.
        works in {real estate} now
        He works as a {school teacher} in town.
        She works as an {x-ray technician}.
        Retired {carpenter}.
        Occupation: {bus driver}
        He is a {plumber} and smokes.
        A {forklift operator} by trade.
        A 45-year-old {electrician} with pain.
        employed as a {paralegal}
    """,
    "USERNAME": """
        Username: {apenn12}
        {mjeffr70} / 2088-06-21
        login: {ada.penn}
    """,
}

CLEAN = """
    Attending: Pending
    Provider: See below
    Staff: None
    Cards: Normal. Renal: Stable.
    GI: Soft, nontender.
    The Patient family present.
    Baby Aspirin 81 mg daily
    Will be 90 mg twice daily
    sister 38 weeks pregnant
    Data collected by machine.
    He works in the evening.
    Appreciate Cardiology recs
    BP 90/58 RR 16 SpO2 92%.
    It will serve as baseline for comparison.
    The titer of hepatitis C. with cirrhosis was low.
    Father died 12 years ago.
    BP 120/80 sitting.
    BP 98/60, pulse 72.
    Blood pressure was 130/85 mmHg.
    Pain 8/10 today.
    pain rated 3/10
    Strength 5/5 throughout.
    Strength 4/5 on the left.
    Reflexes 2/4.
    2/6 systolic murmur.
    MMSE 28/30.
    GCS 15/15.
    Apgar 8/9.
    3/4 inch cut.
    1/2 tab daily.
    1/2 cup of milk.
    7.5/325 mg every 6 hours.
    Norco 5/325 PRN.
    Vision 20/40 in the right eye.
    20/20 vision.
    L4-5 disc bulge.
    L4/5 stenosis.
    C5-6 fusion.
    T10-T12 fracture.
    L5-S1 narrowing.
    WBC 12.5, Hgb 10.2.
    Na 138, K 4.1.
    Sodium 138 potassium 4.1 chloride 101.
    Glucose 110-140.
    TSH 2.5 (0.4-4.5).
    INR 2.3.
    Platelets 250,000.
    Platelets 250000 per microliter.
    Ratio of 3:1.
    2:1 block.
    At 10:30 he slept.
    10:30 am
    at 0600 hours
    at 0600 1200 1800
    given 0600-1800
    16:45:30
    Temp 98.6 F.
    T 37.2 C.
    500 mg twice daily.
    metformin 1000 mg.
    1000 units of heparin.
    Vitamin D 2000 IU daily.
    2000 calories a day.
    0.9% saline at 125 mL/hr.
    40 mg IV q12h
    x3 days
    up to chair x2
    ICD-10 code E11.9.
    ICD I10 and Z79.4.
    250.00 was coded.
    CPT 99213.
    Section 3.2.1 of the plan.
    version 2.1.3
    3.2 x 4.1 cm mass.
    1.2 x 2.3 x 3.4 cm
    4-0 sutures.
    2-3 weeks of rest.
    5-10 mg as needed.
    200-400 mg
    every 4-6 hours
    10-15 minutes
    Grade 3/6 murmur.
    Stage 3 disease.
    EF 55-60%.
    FEV1 80% of predicted.
    O2 sat 95% on RA.
    SpO2 98%.
    on 2L of oxygen
    pH 7.35.
    1st degree block.
    5th metatarsal fracture.
    on the 5th toe
    the 3rd rib
    POD 3, doing well.
    Day 2 of 7.
    hospital day 4
    Gravida 3 para 2.
    G3P2.
    He may be better.
    It may 2 days later improve.
    She will march on.
    Foley removed.
    Foley catheter in place.
    Parkinson disease is stable.
    Parkinson's disease is stable.
    Cushing syndrome was excluded.
    Down syndrome.
    Crohn's disease in remission.
    Murphy sign negative.
    Babinski negative.
    Romberg test normal.
    Wells score 3.
    Glasgow coma scale 15.
    Child-Pugh class B.
    Hodgkin lymphoma.
    Bell's palsy.
    Graves disease.
    Barrett's esophagus.
    Lewy body dementia.
    Gram stain positive.
    Hashimoto thyroiditis.
    Holter monitor placed.
    Doppler ultrasound normal.
    Whipple procedure planned.
    Lachman test negative.
    Lipitor 20 mg.
    Continue Coumadin.
    Start Lasix 40.
    Advair and Spiriva.
    Seen by Cardiology.
    Discussed with Neurology.
    per Pharmacy
    Follow up with Oncology.
    Ask Surgery about it.
    Social Work notified.
    Physical Therapy to see.
    Case Management is involved.
    Emergency Department visit.
    Primary Care clinic.
    Pain Clinic referral.
    Outpatient clinic.
    General Surgery saw him.
    Internal Medicine service.
    Intensive Care Unit.
    CHIEF COMPLAINT: cough
    HISTORY OF PRESENT ILLNESS
    PAST MEDICAL HISTORY:
    REVIEW OF SYSTEMS
    PHYSICAL EXAM
    Assessment and Plan
    Discharge Summary
    Progress Note
    Vital signs stable.
    No known drug allergies.
    NKDA
    Patient is resting.
    The patient was seen.
    Patient: resting comfortably
    Name and address were confirmed.
    He is a smoker.
    She is a good historian.
    He is a former smoker.
    She is a candidate for surgery.
    The patient is a poor sleeper.
    works as needed
    He retired in good health.
    serves as a marker
    family history of cancer
    his mother had diabetes
    her father died of a stroke
    his wife is well
    daughter is at bedside
    He lives in an apartment.
    lives in a nursing home
    lives with family
    He is from out of town.
    Room air saturation.
    operating room time
    bed rest
    bed bound
    in the waiting room
    Unit dose given.
    Emergency room visit.
    2 beds were free
    The left lower lobe is clear.
    Right Lower Lobe pneumonia
    CT of the chest.
    Chest, CT
    MRI brain with contrast.
    MS patient with a relapse.
    OR time was 2 hours.
    PA and lateral films.
    ME was consulted
    IN the morning
    MD aware.
    RN at bedside.
    DNR/DNI
    s/p CABG x4
    h/o MI
    c/o SOB
    w/u negative
    I/O 1200/900
    Intake 1500, output 1200.
    wt 72.5 kg
    Weight 180 lbs.
    Height 5 ft 10 in.
    BMI 31.2.
    HbA1c 7.2%.
    Creatinine 1.2 mg/dL.
    LDL 130, HDL 45.
    A1c of 8.5
    Tumor marker CA-125 was 35.
    B12 deficiency.
    COVID-19 vaccine.
    SARS-CoV-2 negative.
    H1N1 vaccine
    IL-6 level.
    CD4 count 350.
    HLA-B27 positive.
    T2N0M0 tumor.
    BRCA1 mutation.
    D1S1595 marker
    NCT01234567 trial.
    PMID 12345678
    p53 gene
    5 cm below the knee
    30 degrees of flexion
    ROM 0-120.
    120 degrees
    1500 mL urine
    25 g of dextrose
    100.4 F
    q4h prn
    bid for 10 days
    three days later
    two weeks ago
    next month
    last year
    in the morning
    this afternoon
    for 6 months
    over 10 years
    after 3 weeks
    x 14 days
    1 of 3 blood cultures
    2 out of 5
    30-50 cells/hpf
    8-10 WBC/hpf
    1:80 titer
    1:160 dilution
    mL/min/1.73 m2
    $1,500 bill
    1,234,567 copies
    10^6 cells
    e.g. aspirin
    i.e. none
    vs. placebo
    etc. as above
    see above.then stop
    no.it was fine
    Yes/No
    and/or
    Heart Failure clinic
    Wound Care follow up
"""
